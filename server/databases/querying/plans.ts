/** Plans of statements: how the engine would run them. */
import type { Principal } from '../../calls/principal.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import type { Engines } from '../engines.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import { type Queries, statementOf } from '../queries.ts';
import type { PlanStep } from './plan-language.ts';
import type { Plan, PlanQuery } from './plan-schema.ts';

/** Maximum bytes: parsing them blocks the event loop. */
const PLAN_BYTES = 512 * 1024;
const MAX_STEPS = 2000;

interface PlanDeps {
  readonly owned: OwnedDatabases;
  readonly engines: Engines;
  readonly queries: Queries;
}

interface Asked {
  readonly input: PlanQuery;
  readonly signal: AbortSignal;
}

export class Plans {
  readonly #deps: PlanDeps;

  constructor(deps: PlanDeps) {
    this.#deps = deps;
  }

  /** Throws what Queries.run() throws. */
  async explain(principal: Principal, databaseId: string, { input, signal }: Asked): Promise<Plan> {
    const { owned, engines, queries } = this.#deps;
    const about = engines.about((await owned.findLive(principal, databaseId)).engine);
    const { plans } = about;
    if (plans === undefined) throw invalidField('statement', `${about.title} cannot explain statements`);
    const { measure = false, statement: _, command: __, ...more } = input;
    const measured = measure && plans.canMeasure;
    const asked = plans.explain(statementOf(about, input), measured);
    const own = typeof asked === 'string' ? { statement: asked } : { command: asked };
    const call = { input: { ...more, ...own }, maxBytes: PLAN_BYTES, signal };
    const { columns, rows, truncated } = (await queries.run(principal, databaseId, call)).toJSON();
    const steps = truncated ? [] : plans.read({ columns: columns.map(({ name }) => name), rows });
    if (truncated || steps.length > MAX_STEPS)
      throw new AppError('query_failed', 'The plan of this statement is too large to be shown', {
        hint: 'Explain a part of the statement, or use a driver',
        extra: { engine_code: 'too_large', position: null },
      });
    return { steps: steps.map(present), measured };
  }
}

function present({ estimatedRows, actualRows, timeMs, details, ...step }: PlanStep) {
  const figures = { estimated_rows: estimatedRows, actual_rows: actualRows, time_ms: timeMs };
  return { ...step, ...figures, details: [...details] };
}
