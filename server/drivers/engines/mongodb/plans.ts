/** Plans of MongoDB, from its command `explain`, of the built-in engine and of servers. */
import {
  detailsOf,
  membersOf,
  numberOrNull,
  type PlanLanguage,
  type PlanStep,
} from '../../../databases/querying/plan-language.ts';

type Members = Readonly<Record<string, unknown>>;

const SAID = new Set([
  ...['stage', 'nReturned', 'executionTimeMillisEstimate', 'executionTimeMillis', 'indexName'],
  ...['isMultiKey', 'isUnique', 'isSparse', 'isPartial', 'indexVersion'],
]);
const AS_JSON = ['filter', 'sortPattern', 'keyPattern', 'indexBounds', 'transformBy'];

export const MONGODB_PLANS: PlanLanguage = {
  canMeasure: true,
  explain: (command, measure) => ({
    explain: command,
    verbosity: measure ? 'executionStats' : 'queryPlanner',
  }),
  read: ({ columns, rows: [row = []] }) => {
    const reply = Object.fromEntries(columns.map((name, at) => [name, row[at]]));
    const { stages } = reply;
    return Array.isArray(stages) ? pipelineSteps(stages.map(membersOf)) : cursorSteps(reply, 0);
  },
};

/** The last stage of a pipeline is the outermost step; each stage reads from the one before it. */
function pipelineSteps(stages: readonly Members[]): PlanStep[] {
  return stages.toReversed().flatMap((stage, depth) => {
    const [name = '', body] = Object.entries(stage).find(([key]) => key.startsWith('$')) ?? [];
    const inner = membersOf(body);
    if ('queryPlanner' in inner) return cursorSteps(inner, depth);
    const details = body === undefined ? [] : [{ name: 'stage', value: JSON.stringify(body) }];
    return [{ ...figuresOf(stage), depth, operation: name, on: null, details }];
  });
}

function cursorSteps(reply: Members, depth: number): PlanStep[] {
  const planner = membersOf(reply.queryPlanner);
  const run = membersOf(membersOf(reply.executionStats).executionStages);
  const plan = 'stage' in run ? run : membersOf(planner.winningPlan);
  const { namespace } = planner;
  // `database.collection`
  const collection = typeof namespace === 'string' ? namespace.replace(/^[^.]*\./, '') : null;
  return stageSteps('queryPlan' in plan ? membersOf(plan.queryPlan) : plan, depth, collection);
}

function stageSteps(stage: Members, depth: number, collection: string | null): PlanStep[] {
  const { inputStage, inputStages } = stage;
  const inner = Array.isArray(inputStages) ? inputStages : inputStage === undefined ? [] : [inputStage];
  const documents = AS_JSON.flatMap((name) =>
    stage[name] === undefined ? [] : [{ name, value: JSON.stringify(stage[name]) }],
  );
  const index = stage.indexName;
  const on = index === undefined ? (inner.length === 0 ? collection : null) : String(index);
  return [
    {
      ...figuresOf(stage),
      depth,
      operation: String(stage.stage ?? 'Plan'),
      on,
      details: [...detailsOf(stage, new Set([...SAID, ...AS_JSON])), ...documents],
    },
    ...inner.flatMap((one) => stageSteps(membersOf(one), depth + 1, collection)),
  ];
}

function figuresOf(stage: Members) {
  return {
    estimatedRows: null,
    cost: null,
    actualRows: numberOrNull(stage.nReturned),
    timeMs: numberOrNull(stage.executionTimeMillisEstimate),
  };
}
