/** Plans of MariaDB, from its EXPLAIN in JSON: each object in it is a step. */
import {
  detailsOf,
  membersOf,
  numberOrNull,
  type PlanLanguage,
  type PlanStep,
} from '../../../databases/querying/plan-language.ts';

const SAID = new Set([
  ...['table_name', 'rows', 'r_rows', 'cost', 'r_total_time_ms', 'r_table_time_ms', 'r_other_time_ms'],
  ...['r_loops', 'access_type', 'message', 'operation'],
]);
/** Objects with figures of a step, which are not steps themselves. */
const NO_STEPS = new Set(['r_engine_stats', 'query_optimization']);
const ACCESS: Readonly<Record<string, string>> = {
  ALL: 'Full table scan',
  index: 'Full index scan',
  range: 'Index range scan',
  ref: 'Index lookup',
  eq_ref: 'Unique index lookup',
  const: 'One row',
};

export const MYSQL_PLANS: PlanLanguage = {
  canMeasure: true,
  explain: (statement, measure) => `${measure ? 'ANALYZE' : 'EXPLAIN'} FORMAT=JSON ${String(statement)}`,
  read: ({ rows }) => below(membersOf(JSON.parse(String(rows[0]?.[0]))), 0),
};

/** Lists are not steps, except for joins. */
function below(node: Readonly<Record<string, unknown>>, depth: number): PlanStep[] {
  return Object.entries(node).flatMap(([name, value]) => {
    if (NO_STEPS.has(name) || typeof value !== 'object' || value === null) return [];
    if (!Array.isArray(value)) return stepsOf(name, membersOf(value), depth);
    const isJoin = name === 'nested_loop' && value.length > 1;
    const steps = value.flatMap((one) => below(membersOf(one), isJoin ? depth + 1 : depth));
    return isJoin ? [{ ...stepOf(name, {}, depth) }, ...steps] : steps;
  });
}

function stepsOf(name: string, node: Readonly<Record<string, unknown>>, depth: number): PlanStep[] {
  return [stepOf(name, node, depth), ...below(node, depth + 1)];
}

function stepOf(name: string, node: Readonly<Record<string, unknown>>, depth: number): PlanStep {
  const { table_name: table, access_type: access, message, operation } = node;
  const words = name.replaceAll(/[_-]/g, ' ');
  const titled = words.charAt(0).toUpperCase() + words.slice(1);
  const read = access === undefined ? message : (ACCESS[String(access)] ?? access);
  const times = [node.r_table_time_ms, node.r_other_time_ms].map(numberOrNull);
  const tableMs = times.every((one) => one === null)
    ? null
    : times.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const [rows, loops] = [numberOrNull(node.r_rows ?? node.r_output_rows), numberOrNull(node.r_loops)];
  return {
    depth,
    operation: String((name === 'table' ? read : operation) ?? titled),
    on: table === undefined ? null : String(table),
    estimatedRows: numberOrNull(node.rows),
    cost: numberOrNull(node.cost),
    actualRows: rows === null ? null : rows * (loops ?? 1),
    timeMs: numberOrNull(node.r_total_time_ms) ?? tableMs,
    details: detailsOf(node, SAID),
  };
}
