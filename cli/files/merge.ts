/** Merges two sorted lists of any length. */
import { compareNames } from './locations.ts';

export interface Pair<A, B> {
  readonly name: string;
  readonly source: A | undefined;
  readonly target: B | undefined;
}

/** Each name of either list once, in UTF-8 byte order. Keeps one entry of each list at a time. */
export async function* merged<A extends { readonly name: string }, B extends { readonly name: string }>(
  sources: AsyncIterator<A>,
  targets: AsyncIterator<B>,
): AsyncGenerator<Pair<A, B>> {
  let [source, target] = [await next(sources), await next(targets)];
  while (source !== undefined || target !== undefined) {
    const order = orderOf(source?.name, target?.name);
    const pair = { source: order <= 0 ? source : undefined, target: order >= 0 ? target : undefined };
    yield { ...pair, name: (pair.source ?? pair.target)?.name ?? '' };
    if (order <= 0) source = await next(sources);
    if (order >= 0) target = await next(targets);
  }
}

async function next<T>(items: AsyncIterator<T>): Promise<T | undefined> {
  const { value, done } = await items.next();
  return done === true ? undefined : value;
}

function orderOf(one: string | undefined, other: string | undefined): number {
  if (one === undefined) return 1;
  return other === undefined ? -1 : compareNames(one, other);
}
