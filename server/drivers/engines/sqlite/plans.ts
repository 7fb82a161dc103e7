/** Plans of SQLite: lines of text, each with its parent. SQLite estimates and measures nothing. */
import type { PlanLanguage } from '../../../databases/querying/plan-language.ts';

/** `SCAN t`, `SEARCH t USING INDEX i (a=?)`, `USE TEMP B-TREE FOR ORDER BY` */
const READS = /^(SCAN|SEARCH) (.+?)(?: (USING .+))?$/s;

export const SQLITE_PLANS: PlanLanguage = {
  canMeasure: false,
  explain: (statement) => `EXPLAIN QUERY PLAN ${String(statement)}`,
  read: ({ rows }) => {
    const depths = new Map<unknown, number>();
    return rows.map(([id, above, , text]) => {
      const depth = (depths.get(above) ?? -1) + 1;
      depths.set(id, depth);
      const line = String(text);
      const [, verb = line, on = null, using] = READS.exec(line) ?? [];
      const details = using === undefined ? [] : [{ name: 'index', value: using.replace(/^USING /, '') }];
      return { depth, operation: verb, on, details, ...NO_FIGURES };
    });
  },
};

const NO_FIGURES = { estimatedRows: null, cost: null, actualRows: null, timeMs: null };
