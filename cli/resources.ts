/** Commands about resources of the cloud, by name or id. */
import type { Cloud, Pages } from '../sdk/index.ts';
import type { Command, Invocation, Option } from './command.ts';
import { ClientError, EXIT, UsageError } from './failures.ts';
import { meant } from './nearest.ts';
import { confirm } from './prompt.ts';

export const YES: Readonly<Record<string, Option>> = {
  yes: { short: 'y', summary: 'skip the confirmation' },
};

export interface Kind<T> {
  /** `machine`, for error messages. */
  readonly noun: string;
  /** The command that lists them. */
  readonly listedBy: string;
  readonly namesOf: (resource: T) => readonly [id: string, name: string];
}

/** The resource with that id or name. Throws ClientError for none, or several with that name. */
export async function find<T>(
  list: Pages<T> | readonly T[],
  { noun, listedBy, namesOf }: Kind<T>,
  word: string,
): Promise<T> {
  const found: T[] = [];
  const names: string[] = [];
  for await (const resource of bounded(list)) {
    const [id, name] = namesOf(resource);
    if (id === word) return resource;
    if (name === word) found.push(resource);
    else if (names.length < MAX_GUESSES) names.push(name);
  }
  const [only] = found;
  if (only === undefined) {
    throw new ClientError(
      `no ${noun} ${word}${meant(word, names)}`,
      EXIT.notFound,
      `See: cloudlet ${listedBy}`,
    );
  }
  if (found.length === 1) return only;
  const ids = found.map((resource) => namesOf(resource)[0]).join(', ');
  throw new ClientError(`${word} is ambiguous: ${ids}`, EXIT.conflict, 'Use the ID');
}

/** A command about one resource. */
export function about<T>(
  of: (cloud: Cloud, word: string) => Promise<T>,
  work: (resource: T, call: Invocation & { readonly cloud: Cloud }) => Promise<void>,
): Command['run'] {
  return async (call) => {
    const { cloud } = call.session();
    await work(await of(cloud, call.words[0] ?? ''), { ...call, cloud });
  };
}

export async function assertMeant({ options }: Invocation, question: string): Promise<void> {
  if (options.has('yes') || (await confirm(question))) return;
  throw new UsageError('nothing was deleted', 'Use --yes in scripts (no terminal to confirm on)');
}

/** Recovery points that a resource can be restored from. */
export function showPoints(
  points: readonly { readonly point_id: string; readonly created_at: string }[],
  output: Invocation['output'],
): void {
  output.table(points, ['POINT', 'CREATED'], ({ point_id, created_at }) => [point_id, created_at]);
}

/** A resource as lines of its members, without those that are empty. */
export function linesOf(resource: object): string[] {
  const members = Object.entries(resource).filter(([, value]) => value !== null && value !== '');
  const width = Math.max(...members.map(([name]) => name.length));
  return members.map(([name, value]) => {
    return `${name.padEnd(width)}  ${typeof value === 'object' ? JSON.stringify(value) : value}`;
  });
}

/** All entries of a list, in memory: these lists have a few thousand at most. */
export async function all<T>(list: Pages<T>): Promise<T[]> {
  const resources: T[] = [];
  for await (const resource of bounded(list)) resources.push(resource);
  return resources;
}

/** Maximum names compared with a mistyped one. */
const MAX_GUESSES = 10_000;
/** Maximum entries of a list that is read as a whole. */
const MAX_RESOURCES = 200_000;

async function* bounded<T>(list: Pages<T> | readonly T[]): AsyncGenerator<T> {
  let count = 0;
  for await (const resource of list) {
    if (++count > MAX_RESOURCES)
      throw new ClientError(`the list has more than ${MAX_RESOURCES} entries`, EXIT.failure);
    yield resource;
  }
}
