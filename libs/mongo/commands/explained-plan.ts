/** The stages of a plan, in the format of `explain`. */
import { type Document, EJSON, ObjectId } from 'bson';
import type { Index } from '../storage/index-values.ts';
import type { Demand, Plan, Scan, Used } from '../storage/plan.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';

export type Stage = Document & { readonly stage: string };

/** Maximum values of one field in the reply. */
const MAX_VALUES = 1000;

/** The reading stages, the first one first. `filter`: as displayed; null: none. */
export function readingStage(plan: Plan, filter: Document | null): Stage[] {
  const { index, branches } = plan;
  const direction = plan.isReverse ? 'backward' : 'forward';
  const tested = filter === null ? {} : { filter };
  if (branches !== undefined) {
    const inputStages = branches.map((scan) => indexStage(scan, direction));
    return [
      { stage: 'OR', inputStages },
      { stage: 'FETCH', ...tested },
    ];
  }
  if (index === null) return [{ stage: 'COLLSCAN', ...tested, direction }];
  if (plan.search !== undefined) return [{ stage: 'TEXT_MATCH', ...aboutIndex(index), ...tested }];
  if (plan.nearest !== undefined) {
    const isFlat = index.fields.some(({ kind }) => kind === '2d');
    return [{ stage: isFlat ? 'GEO_NEAR_2D' : 'GEO_NEAR_2DSPHERE', ...aboutIndex(index), ...tested }];
  }
  return [indexStage({ ...plan, index }, direction), { stage: 'FETCH', ...tested }];
}

function aboutIndex({ name, spec, isMultikey }: Index): Document {
  return { keyPattern: spec.key, indexName: name, isMultiKey: isMultikey, indexVersion: 2 };
}

function indexStage({ index, used }: Scan, direction: string): Stage {
  const { spec } = index;
  const flags = {
    isUnique: spec.unique === true,
    isSparse: spec.sparse === true,
    isPartial: spec.partialFilterExpression !== undefined,
  };
  const bounds = used === undefined ? {} : { indexBounds: boundsOf(index, used) };
  return { stage: 'IXSCAN', ...aboutIndex(index), ...flags, direction, ...bounds };
}

function boundsOf(index: Index, used: Used): Document {
  const bounds = index.fields.map(({ path, isDescending }, i) => {
    const name = path.join('.');
    const demand = used.demands.get(name);
    const values = demand?.values ?? [];
    if (i < used.equal) return [name, values.slice(0, MAX_VALUES).map(only)];
    if (i !== used.equal || !used.hasRange || demand === undefined) return [name, [wholeOf(isDescending)]];
    const { spans } = demand;
    if (spans === null) return [name, [rangeOf(demand, index.isMultikey, isDescending)]];
    return [name, spans.slice(0, MAX_VALUES).flatMap((span) => shownSpan(span, isDescending))];
  });
  return Object.fromEntries(bounds);
}

const only = (value: unknown) => `[${shown(value)}, ${shown(value)}]`;

function shownSpan(span: NonNullable<Demand['spans']>[number], isDescending: boolean): string[] {
  if ('value' in span) return [only(span.value)];
  const { pattern, options } = span.regex;
  const itself = `[/${pattern}/${options}, /${pattern}/${options}]`;
  const characters = [...span.beginning];
  const last = characters.pop()?.codePointAt(0) ?? 0;
  const [low, high] = [span.beginning, `${characters.join('')}${String.fromCodePoint(last + 1)}`].map(shown);
  return isDescending ? [itself, `(${high}, ${low}]`] : [`[${low}, ${high})`, itself];
}

const wholeOf = (isDescending: boolean) => (isDescending ? '[MaxKey, MinKey]' : '[MinKey, MaxKey]');

/** A range covers values of one type. */
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
