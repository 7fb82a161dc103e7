/** Public schemas of plans. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { NewQuery } from '../query-schema.ts';

const { statement, command, params, query_id } = NewQuery.properties;
export const PlanQuery = namedObject('DatabasePlanQuery', {
  statement,
  command,
  params,
  query_id,
  measure: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Run the statement, read-only, to measure each step, if the engine supports it',
    }),
  ),
});

export type PlanQuery = Static<typeof PlanQuery>;

const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });
export const Plan = namedObject('DatabasePlan', {
  steps: Type.Array(
    namedObject('DatabasePlanStep', {
      depth: Type.Integer({
        description: '0: the outermost step. The steps that supply its rows follow, one level deeper',
      }),
      operation: Type.String({ description: 'Name of the step in the engine' }),
      on: textOrNull('Table, index or collection'),
      estimated_rows: orNull('null if the engine does not report it; this also holds for the members below'),
      cost: orNull('Cost in units of the engine, including the steps below'),
      actual_rows: orNull('Measured'),
      time_ms: orNull('Measured; in most engines including the steps below'),
      details: Type.Array(namedObject('DatabasePlanDetail', { name: Type.String(), value: Type.String() })),
    }),
  ),
  measured: Type.Boolean({ description: 'Whether the statement was run' }),
});
export type Plan = Static<typeof Plan>;
