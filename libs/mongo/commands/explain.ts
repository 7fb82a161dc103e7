/** `explain`: which index a command uses and, if requested, how much it reads. */
import { calculateObjectSize, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { readVariables } from '../query/command-variables.ts';
import { compileFilter, type FilterScope } from '../query/filter.ts';
import { compilePipeline } from '../query/pipeline.ts';
import { readSort, writeSort } from '../query/sorting.ts';
import { type Examined, readDocuments } from '../storage/documents-reading.ts';
import type { Plan, SortSpec } from '../storage/plan.ts';
import { planQuery } from '../storage/query-plan.ts';
import { isDocument } from '../values/field-paths.ts';
import { plainNumber } from '../values/numbers.ts';
import { type CommandScope, collationOf, collectionName, namespaceOf, readerOf } from './command-scope.ts';
import { readingStage, type Stage } from './explained-plan.ts';
import { serverInfo } from './figures.ts';
import { geoNearStage, readGeoNear } from './geo-near.ts';
import { split } from './pipeline-start.ts';
import { resolveView, stagesOfRead } from './views.ts';

const VERBOSITIES = ['queryPlanner', 'executionStats', 'allPlansExecution'];
const FIGURES = ['$collStats', '$indexStats', '$documents'];
/** Longer commands are not repeated in the reply. */
const MAX_TOLD_BYTES = 2 ** 20;

/** The read that a command implies: a collection and its stages. */
interface Explained {
  readonly base: string;
  readonly read: { filter: Document; sort: SortSpec; skip: number; limit: number };
  readonly rest: readonly Document[];
  /** A leading `$geoNear` stage. */
  readonly near: Document | null;
  readonly filter: FilterScope;
  readonly hint: unknown;
}

type Asked = Pick<Explained, 'read'> & { projection?: unknown; top: string | null };

/** Throws CommandError. */
export function explain(
  { explain: inner, verbosity = 'allPlansExecution' }: Document,
  scope: CommandScope,
): Document {
  if (!isDocument(inner)) throw new CommandError('TypeMismatch', "'explain' must be a command");
  if (!VERBOSITIES.includes(verbosity))
    throw new CommandError('FailedToParse', `verbosity string must be one of ${VERBOSITIES.join(', ')}`);
  const [kind = ''] = Object.keys(inner);
  const isLong = calculateObjectSize(inner) > MAX_TOLD_BYTES;
  const about = {
    ...(isLong ? {} : { command: { ...inner, $db: scope.databaseName } }),
    serverInfo: serverInfo(),
    ok: 1,
  };
  const isRead = ['find', 'count', 'distinct', 'aggregate'].includes(kind);
  const told = { scope, isLong, verbosity: isRead ? verbosity : 'queryPlanner' };
  const asked = kind === 'aggregate' ? null : askedOf(kind, inner);
  const explained = explainedOf(inner, asked, scope);
  const [first = {}] = explained.rest;
  if (FIGURES.some((name) => name in first)) return { explainVersion: '1', stages: explained.rest, ...about };
  const counts = told.verbosity === 'queryPlanner' ? null : run(explained, scope);
  const stages = plannedStages(explained.rest);
  const cursor = cursorOf(explained, { ...told, counts, above: stages.above, asked });
  if (stages.left.length === 0 && explained.near === null)
    return { explainVersion: '1', ...cursor, ...about };
  const at = explained.rest.length - stages.left.length;
  const list = stages.left.map((stage, i) => ({ ...stage, ...counted(counts?.stages[at + i]) }));
  const key = explained.near === null ? '$cursor' : '$geoNearCursor';
  const whole = [{ [key]: cursor, ...counted(counts?.stages[at - 1] ?? counts?.read) }, ...list];
  return { explainVersion: '1', stages: whole, ...about };
}

function counted(count: Count | undefined): Document {
  return count === undefined ? {} : { nReturned: count.n, executionTimeMillisEstimate: count.ms };
}

/** The read of a command without a pipeline. Throws CommandError. */
function askedOf(kind: string, inner: Document): Asked {
  const read = (filter: unknown, { sort, skip = 0, limit = 0 }: Document) => ({
    filter: (filter ?? {}) as Document,
    sort: readSort(sort),
    skip: plainNumber(skip),
    limit: Math.abs(plainNumber(limit)),
  });
  switch (kind) {
    case 'find':
      return { read: read(inner.filter, inner), projection: inner.projection, top: null };
    case 'count':
      return { read: read(inner.query, inner), top: 'COUNT' };
    case 'distinct':
      return { read: read(inner.query, {}), top: null };
    case 'findAndModify':
    case 'findandmodify':
      return {
        read: read(inner.query, { sort: inner.sort, limit: 1 }),
        top: inner.remove ? 'DELETE' : 'UPDATE',
      };
    case 'update':
    case 'delete': {
      const statements: unknown = kind === 'update' ? inner.updates : inner.deletes;
      const [only, ...more] = Array.isArray(statements) ? statements : [];
      if (!isDocument(only) || more.length > 0)
        throw new CommandError('InvalidLength', 'explained write batches must be of size 1');
      return { read: read(only.q, { sort: only.sort }), top: kind === 'update' ? 'UPDATE' : 'DELETE' };
    }
    default:
      throw new CommandError('CommandNotFound', `Explain failed due to unknown command: ${kind}`);
  }
}

function explainedOf(inner: Document, asked: Asked | null, scope: CommandScope): Explained {
  const name = inner.aggregate === 1 ? '$cmd.aggregate' : collectionName(inner, scope);
  const [statement = inner] = [inner.updates ?? inner.deletes].flat();
  const collation = collationOf(statement as Document, scope.store.collection(name));
  const filter = { variables: readVariables(inner.let), collation };
  const { hint } = statement as Document;
  const { base, pipeline } = resolveView(name, scope.store);
  if (asked !== null && base === name) {
    compileFilter(asked.read.filter, { ...filter, special: { name: null } });
    return { base, read: asked.read, rest: [], near: null, filter, hint };
  }
  const own: unknown = asked === null ? inner.pipeline : stagesOfRead(asked.read);
  if (!Array.isArray(own)) split(own);
  const whole = [...pipeline, ...(own as Document[])];
  compilePipeline(
    whole.filter((stage, i) => !isAtItsPlace(stage, i === 0, i === whole.length - 1)),
    readerOf(scope),
  );
  const near = isDocument(whole[0]) && '$geoNear' in whole[0] ? whole[0] : null;
  const { read, rest } = split(near === null ? whole : whole.slice(1));
  if (near !== null)
    return {
      base,
      read: { filter: {}, sort: [], skip: 0, limit: 0 },
      rest: whole.slice(1),
      near,
      filter,
      hint,
    };
  return { base, read: { ...read, skip: 0 }, rest, near, filter, hint };
}

/** Whether a stage that must be first or last is in that position. */
function isAtItsPlace(stage: unknown, isFirst: boolean, isLast: boolean): boolean {
  if (!isDocument(stage)) return false;
  if (isFirst && ['$geoNear', ...FIGURES].some((name) => name in stage)) return true;
  return isLast && ('$out' in stage || '$merge' in stage);
}

/** Stages that are part of the query plan, and the remaining ones. */
function plannedStages(rest: readonly Document[]): { above: Stage[]; left: readonly Document[] } {
  const above: Stage[] = [];
  for (const [i, { $skip: skip, $limit: limit, $project: project }] of rest.entries()) {
    if (skip !== undefined) above.push({ stage: 'SKIP', skipAmount: skip });
    else if (limit !== undefined) above.push({ stage: 'LIMIT', limitAmount: limit });
    else if (isDocument(project)) above.push({ stage: 'PROJECTION_DEFAULT', transformBy: project });
    else return { above, left: rest.slice(i) };
  }
  return { above, left: [] };
}

interface Told {
  readonly scope: CommandScope;
  readonly verbosity: string;
  readonly isLong: boolean;
  readonly counts: Counts | null;
  readonly above: readonly Stage[];
  readonly asked: Asked | null;
}

function cursorOf({ base, read, rest, near, filter, hint }: Explained, told: Told): Document {
  const { scope, verbosity, isLong, counts, above, asked } = told;
  const collection = scope.store.collection(base);
  const { sort, skip, limit } = read;
  const question = { filter: read.filter, sort, collation: filter.collation ?? null, hint };
  const nearest = near === null ? null : readGeoNear(near, collection, filter);
  const scan: Plan = { index: null, ranges: [], isReverse: false, isSorted: sort.length === 0 };
  const plan: Plan =
    nearest === null ? (collection ? planQuery(collection, question) : scan) : { ...scan, ...nearest };
  const shown = isLong || Object.keys(read.filter).length === 0 ? null : read.filter;
  const levels: Stage[] = collection ? readingStage(plan, shown) : [{ stage: 'EOF' }];
  if (!plan.isSorted && sort.length > 0)
    levels.push({
      stage: 'SORT',
      sortPattern: writeSort(sort),
      ...(limit > 0 ? { limitAmount: skip + limit } : {}),
    });
  if (rest.length === 0 && skip > 0) levels.push({ stage: 'SKIP', skipAmount: skip });
  if (rest.length === 0 && limit > 0) levels.push({ stage: 'LIMIT', limitAmount: limit });
  if (isDocument(asked?.projection))
    levels.push({ stage: 'PROJECTION_DEFAULT', transformBy: asked.projection });
  levels.push(...above, ...(asked?.top ? [{ stage: asked.top }] : []));
  // If a filter is only `$or`, a server plans each branch separately.
  if (plan.branches !== undefined && Object.keys(read.filter).join() === '$or')
    levels.push({ stage: 'SUBPLAN' });
  const queryPlanner = {
    namespace: namespaceOf(base, scope),
    indexFilterSet: false,
    parsedQuery: shown ?? {},
    winningPlan: nested(levels),
    rejectedPlans: [],
  };
  if (counts === null) return { queryPlanner };
  const { read: documents, examined, stages } = counts;
  const isByIndex = plan.index !== null || plan.branches !== undefined;
  const keys = isByIndex ? examined.keys : [];
  const allKeys = keys.reduce((sum, each) => sum + each, 0);
  const ms = { executionTimeMillisEstimate: documents.ms };
  const scanned = (count = 0) => ({ nReturned: count, ...ms, keysExamined: count });
  const last = stages[above.length - 1] ?? documents;
  const executed = levels.map((stage) => ({
    ...stage,
    nReturned: stage.stage === 'OR' ? examined.documents : documents.n,
    ...ms,
    ...(stage.stage === 'IXSCAN' ? scanned(allKeys) : {}),
    ...(stage.stage === 'OR'
      ? { inputStages: stage.inputStages.map((each: Stage, i: number) => ({ ...each, ...scanned(keys[i]) })) }
      : {}),
    ...(['FETCH', 'COLLSCAN'].includes(stage.stage) ? { docsExamined: examined.documents } : {}),
  }));
  const executionStats = {
    executionSuccess: true,
    nReturned: last.n,
    executionTimeMillis: documents.ms,
    totalKeysExamined: allKeys,
    totalDocsExamined: examined.documents,
    executionStages: nested(executed),
    ...(verbosity === 'allPlansExecution' ? { allPlansExecution: [] } : {}),
  };
  return { queryPlanner, executionStats };
}

/** The last stage, with the previous ones nested in it. */
function nested(levels: readonly Stage[]): Document {
  return levels.reduce<Document | null>(
    (inner, stage) => (inner === null ? stage : { ...stage, inputStage: inner }),
    null,
  ) as Document;
}

interface Count {
  n: number;
  ms: number;
}

interface Counts {
  readonly read: Count;
  readonly examined: Examined;
  readonly stages: readonly Count[];
}

/** Executes the command's reads, and counts the output of each stage. */
function run({ base, read, rest, near, filter, hint }: Explained, scope: CommandScope): Counts {
  const from = scope.clock.monotonic();
  const examined: Examined = { documents: 0, keys: [] };
  function* tally(documents: Iterable<Document>, count: Count): Generator<Document> {
    for (const document of documents) {
      count.n++;
      yield document;
    }
    count.ms = Math.round(scope.clock.monotonic() - from);
  }
  const collection = scope.store.collection(base);
  const all =
    near !== null
      ? (geoNearStage(near, collection, { scope, filter }) ?? [])
      : collection === undefined
        ? []
        : readDocuments(scope.store, collection, { ...filter, ...read, hint, examined }).map(
            ({ document }) => document,
          );
  const first = { n: 0, ms: 0 };
  let documents: Iterable<Document> = tally(all, first);
  const stages = rest.map((stage) => {
    const count = { n: 0, ms: 0 };
    if (!('$out' in stage || '$merge' in stage))
      documents = tally(compilePipeline([stage], readerOf(scope))(documents, filter), count);
    return count;
  });
  for (const _ of documents);
  if (near !== null) Object.assign(examined, { documents: first.n, keys: [first.n] });
  return { read: first, examined, stages };
}
