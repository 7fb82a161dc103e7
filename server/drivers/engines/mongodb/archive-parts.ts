/**
 * Creates the collections and indexes of an archive, without options that the server does not
 * support: the archive may come from another version of MongoDB.
 */
import type { Document } from 'bson';

export interface LeftOutOption {
  readonly text: string;
  readonly reason: string;
}

/** A server's refusal of a command. */
export interface Refusal {
  readonly code: number;
  readonly message: string;
}

export interface ArchiveTarget {
  /** Runs a command; rejects with the result of `refusalOf` if the server refuses it. */
  readonly ask: (command: Document) => Document | Promise<Document>;
  /** null: another error. */
  readonly refusalOf: (error: unknown) => Refusal | null;
  /** Collects unsupported options and indexes; null: they are refused. */
  readonly leftOut: ((option: LeftOutOption) => void) | null;
}

/** `as`: the name of the collection created from the archive. */
export interface NamedCollection {
  readonly name: string;
  readonly as: string;
}

const MOST_OPTIONS = 100;
/** Options that depend on each other, or that define the collection. */
const KEPT_TOGETHER = new Set([
  'viewOn',
  'pipeline',
  'capped',
  'size',
  'max',
  'timeseries',
  'clusteredIndex',
]);
const DUPLICATE_KEY = 11_000;
const UNKNOWN_INDEX_OPTION = 197;
const INVALID_NAMESPACE = 73;

/**
 * If a collection cannot have all options, tries without each that this server rejects by itself.
 * False: the collection is left out, for example because the documents of a time series are in
 * buckets that only MongoDB reads.
 */
export async function makeCollection(
  target: ArchiveTarget,
  { name, as }: NamedCollection,
  options: Document,
): Promise<boolean> {
  const { ask, leftOut } = target;
  const whole = await refusal(target, async () => void (await ask({ create: as, ...options })));
  if (whole === null) return true;
  if (leftOut === null) throw whole.error;
  if (options.timeseries !== undefined) {
    leftOut({ text: `${name}: timeseries`, reason: whole.message });
    return false;
  }
  if (options.viewOn !== undefined) {
    leftOut({ text: `view ${name}`, reason: whole.message });
    return false;
  }
  const kept: [string, unknown][] = [];
  for (const [option, value] of Object.entries(options)) {
    const why = KEPT_TOGETHER.has(option)
      ? null
      : await refusal(target, async () => {
          await ask({ create: as, [option]: value });
          await ask({ drop: as });
        });
    if (why === null) kept.push([option, value]);
    else leftOut({ text: `${name}: ${option}`, reason: why.message });
  }
  const why = await refusal(
    target,
    async () => void (await ask({ create: as, ...Object.fromEntries(kept) })),
  );
  if (why === null) return true;
  if (why.code === INVALID_NAMESPACE) {
    leftOut({ text: `collection ${name}`, reason: why.message });
    return false;
  }
  const alone = kept.filter(([option]) => !KEPT_TOGETHER.has(option));
  if (alone.length === kept.length) throw why.error;
  const together = kept.filter(([option]) => KEPT_TOGETHER.has(option)).map(([option]) => option);
  leftOut({ text: `${name}: ${together.join(', ')}`, reason: why.message });
  await ask({ create: as, ...Object.fromEntries(alone) });
  return true;
}

/** Tells what an archive has of its server: accounts have users of their own. */
export function tellPassedOver(namespaces: readonly string[], leftOut: ArchiveTarget['leftOut']): void {
  for (const text of namespaces)
    leftOut?.({ text, reason: 'it belongs to the server, whose users, roles, functions and log stay there' });
}

export async function makeIndexes(
  target: ArchiveTarget,
  named: NamedCollection,
  { indexes: found, options }: { readonly indexes: readonly Document[]; readonly options: Document },
): Promise<void> {
  if (found.length === 0) return;
  const { ask, leftOut } = target;
  const current = leftOut === null ? found : found.map((index) => withNumbers(index, named.name, leftOut));
  const indexes = options.collation === undefined ? current : current.map(inItsOrder);
  const why = await refusal(target, async () => void (await ask({ createIndexes: named.as, indexes })));
  if (why === null) return;
  if (leftOut === null || why.code === DUPLICATE_KEY) throw why.error;
  for (const index of indexes) await makeIndex({ ...target, leftOut }, named, index);
}

/** Servers before 3.4 took any value of a key for ascending; those of today take numbers but 0, and kinds. */
function withNumbers(index: Document, name: string, leftOut: (option: LeftOutOption) => void): Document {
  const key = Object.entries(index.key as Document).map(([path, value]) => {
    const isNow = typeof value === 'string' ? value !== '' : Number(value) !== 0 && isNumber(value);
    return [path, isNow ? value : 1] as const;
  });
  if (key.every(([path, value]) => value === index.key[path])) return index;
  const text = `index ${String(index.name)} of ${name}: key`;
  leftOut({ text, reason: 'a field of an index is ascending (1) or descending (-1)' });
  return { ...index, key: Object.fromEntries(key) };
}

const isNumber = (value: unknown) =>
  typeof value === 'number' || /^(?:Int32|Long|Double)$/.test(String((value as Document)?._bsontype));

/** An archive names no binary order; without one, an index would get that of its collection. */
function inItsOrder(index: Document): Document {
  return index.collation === undefined && index.name !== '_id_'
    ? { ...index, collation: { locale: 'simple' } }
    : index;
}

async function makeIndex(
  target: ArchiveTarget & { readonly leftOut: (option: LeftOutOption) => void },
  { name, as }: NamedCollection,
  index: Document,
): Promise<void> {
  const spec = { ...index };
  for (let tries = 0; tries < MOST_OPTIONS; tries++) {
    const work = async () => void (await target.ask({ createIndexes: as, indexes: [spec] }));
    const why = await refusal(target, work);
    if (why === null) return;
    if (why.code === DUPLICATE_KEY) throw why.error;
    const option = Object.keys(spec).find((each) => why.message.includes(`'${each}'`));
    const isOption = why.code === UNKNOWN_INDEX_OPTION && option !== undefined;
    const text = `index ${String(index.name)} of ${name}${isOption ? `: ${option}` : ''}`;
    target.leftOut({ text, reason: why.message });
    if (!isOption) return;
    delete spec[option];
  }
}

async function refusal(
  { refusalOf }: ArchiveTarget,
  work: () => Promise<void>,
): Promise<(Refusal & { readonly error: unknown }) | null> {
  try {
    await work();
    return null;
  } catch (error) {
    const why = refusalOf(error);
    if (why === null) throw error;
    return { code: why.code, message: why.message, error };
  }
}
