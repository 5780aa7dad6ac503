// How results of the search are put in order. A page that explains what was looked for, as its title
// says, comes before pages with a section about it, the names of the reference, examples and proofs.
const MADE = /^(api|auto_examples|mathematics)\//, TITLE = 15;
// Without endings, so that "classes" finds "class".
const LOOKED_FOR = (new URLSearchParams(location.search).get("q") || "").toLowerCase()
  .split(/\s+/).filter(Boolean).map((word) => word.replace(/(es|s)$/, ""));
const isAbout = (title) => LOOKED_FOR.some((word) => title.toLowerCase().includes(word));
var Scorer = {
  score: ([page, title, , , score]) => {
    if (score < TITLE || MADE.test(page)) return score;
    return score + (isAbout(title.split(" > ")[0]) ? 60 : 20);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: TITLE,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
