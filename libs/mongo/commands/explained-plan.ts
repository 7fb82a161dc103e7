/** The stages of a plan, as `explain` tells them. */
import { type Document, EJSON, ObjectId } from 'bson';
import type { Index } from '../storage/index-values.ts';
import type { Demand, Plan, Question } from '../storage/plan.ts';
import { queryOf } from '../storage/query-plan.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';

export type Stage = Document & { readonly stage: string };

/** Maximum values of one field in the reply. */
const MAX_VALUES = 1000;

/** The stages that read, the first one first. `filter`: as it is told; null: it is not. */
export function readingStage(plan: Plan, question: Question, filter: Document | null): Stage[] {
  const { index } = plan;
  const direction = plan.isReverse ? 'backward' : 'forward';
  const tested = filter === null ? {} : { filter };
  if (index === null) return [{ stage: 'COLLSCAN', ...tested, direction }];
  const { name, spec, isMultikey } = index;
  const about = { keyPattern: spec.key, indexName: name, isMultiKey: isMultikey, indexVersion: 2 };
  if (plan.search !== undefined) return [{ stage: 'TEXT_MATCH', ...about, ...tested }];
  if (plan.nearest !== undefined) {
    const isFlat = index.fields.some(({ kind }) => kind === '2d');
    return [{ stage: isFlat ? 'GEO_NEAR_2D' : 'GEO_NEAR_2DSPHERE', ...about, ...tested }];
  }
  const flags = {
    isUnique: spec.unique === true,
    isSparse: spec.sparse === true,
    isPartial: spec.partialFilterExpression !== undefined,
  };
  const bounds = plan.used === undefined ? {} : { indexBounds: boundsOf(index, plan.used, question) };
  return [
    { stage: 'IXSCAN', ...about, ...flags, direction, ...bounds },
    { stage: 'FETCH', ...tested },
  ];
}

function boundsOf(index: Index, used: NonNullable<Plan['used']>, question: Question): Document {
  const { demands } = queryOf(question);
  const bounds = index.fields.map(({ path, isDescending }, i) => {
    const name = path.join('.');
    const demand = demands.get(name);
    const values = demand?.values ?? [];
    if (i < used.equal)
      return [name, values.slice(0, MAX_VALUES).map((each) => `[${shown(each)}, ${shown(each)}]`)];
    const hasRange = i === used.equal && used.hasRange && demand !== undefined;
    return [name, [hasRange ? rangeOf(demand, index.isMultikey, isDescending) : wholeOf(isDescending)]];
  });
  return Object.fromEntries(bounds);
}

const wholeOf = (isDescending: boolean) => (isDescending ? '[MaxKey, MinKey]' : '[MinKey, MaxKey]');

/** A range stays within values of one type. */
function rangeOf({ low, high }: Demand, isMultikey: boolean, isDescending: boolean): string {
  const end = isMultikey && low !== null ? null : high;
  const [least, most] = endsOf((low ?? high)?.value);
  const lower = [low?.isOpen ? '(' : '[', low === null ? least : shown(low.value)];
  const upper = [end?.isOpen ? ')' : ']', end === null ? most : shown(end.value)];
  return isDescending
    ? `${upper[0] === ')' ? '(' : '['}${upper[1]}, ${lower[1]}${lower[0] === '(' ? ')' : ']'}`
    : `${lower[0]}${lower[1]}, ${upper[1]}${upper[0]}`;
}

function endsOf(value: unknown): [string, string] {
  if (isNumber(value)) return ['-inf.0', 'inf.0'];
  if (typeof value === 'string') return ['""', '{}'];
  if (value instanceof Date) return ['new Date(-9223372036854775808)', 'new Date(9223372036854775807)'];
  return ['MinKey', 'MaxKey'];
}

function shown(value: unknown): string {
  if (isNumber(value)) return String(plainNumber(value));
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  return EJSON.stringify(value ?? null) ?? 'null';
}
