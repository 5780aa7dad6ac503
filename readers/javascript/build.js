// Takes what the package shares with the pages of cloakgp, and the licence, from the repository.
import { copyFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
copyFileSync(here("../../src/cloakgp/pages/templates/predictor.js"), here("predictor.js"));
copyFileSync(here("../../LICENSE"), here("LICENSE"));
