// How the search orders what it finds: pages that explain come before pages that list.
const LISTS = /^(reference\/(command-line|index|input|record)$|changelog|concordance|compared|proofs|reproduce)/;
const NEITHER = /^(reference|gallery|notebooks|methods)\/|^(index|glossary|howto\/index)$|evidence$/;
var Scorer = {
  score: ([page, , , , score]) => score + (LISTS.test(page) ? -8 : NEITHER.test(page) ? 0 : 8),
  objNameMatch: 11,
  objPartialMatch: 3,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
