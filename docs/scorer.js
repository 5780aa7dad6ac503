// How results of the search are put in order. A page that explains what was looked for, as its title
// says, comes before the names of the reference, and before examples and proofs.
const EXPLAINS = /^(how-to|start)\//, MADE = /^(api|auto_examples|mathematics)\//;
const TITLE = 15;
var Scorer = {
  score: ([page, , , , score]) => {
    if (score < TITLE || MADE.test(page)) return score;
    return score + (EXPLAINS.test(page) ? 40 : 30);
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
