/** Plans of PostgreSQL, from its EXPLAIN in JSON. */
import {
  detailsOf,
  membersOf,
  numberOrNull,
  type PlanLanguage,
  type PlanStep,
} from '../../../databases/querying/plan-language.ts';

/** Members that are shown elsewhere, or are not useful. */
const SAID = new Set([
  ...['Node Type', 'Relation Name', 'Index Name', 'CTE Name', 'Function Name', 'Alias', 'Schema'],
  ...['Startup Cost', 'Total Cost', 'Plan Rows', 'Plan Width', 'Actual Startup Time', 'Actual Total Time'],
  ...[
    'Actual Rows',
    'Actual Loops',
    'Parallel Aware',
    'Async Capable',
    'Parent Relationship',
    'Inner Unique',
  ],
]);
/** Counts of blocks, which are omitted if zero. */
const BLOCKS = / Blocks$|^Subplans Removed$/;

export const POSTGRESQL_PLANS: PlanLanguage = {
  canMeasure: true,
  explain: (statement, measure) =>
    `EXPLAIN (FORMAT JSON${measure ? ', ANALYZE, BUFFERS' : ''}) ${String(statement)}`,
  read: ({ rows }) => {
    const answer = rows[0]?.[0];
    // Numbers that JavaScript would round leave the answer text.
    const plans = typeof answer === 'string' ? (JSON.parse(answer) as unknown) : answer;
    const [whole] = Array.isArray(plans) ? plans : [];
    return stepsOf(membersOf(whole).Plan, 0);
  },
};

function stepsOf(value: unknown, depth: number): PlanStep[] {
  const node = membersOf(value);
  const loops = numberOrNull(node['Actual Loops']);
  const all = (name: string) => {
    const each = numberOrNull(node[name]);
    return each === null || loops === null ? null : each * loops;
  };
  const on = [node['Relation Name'] ?? node['CTE Name'] ?? node['Function Name'], node['Index Name']];
  const below = Array.isArray(node.Plans) ? node.Plans : [];
  const details = detailsOf(node, SAID).filter(({ name, value: said }) => !BLOCKS.test(name) || said !== '0');
  return [
    {
      depth,
      operation: String(node['Node Type'] ?? 'Utility statement'),
      on: on.filter((name) => name !== undefined).join(', ') || null,
      estimatedRows: numberOrNull(node['Plan Rows']),
      cost: numberOrNull(node['Total Cost']),
      actualRows: all('Actual Rows'),
      timeMs: all('Actual Total Time'),
      details,
    },
    ...below.flatMap((one) => stepsOf(one, depth + 1)),
  ];
}
