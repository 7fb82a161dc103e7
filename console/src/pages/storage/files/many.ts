/** One call per object: several at a time, at the rate that the cloud accepts. */
import { CloudError } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';

/** An object, or without `id` a folder with its content. */
export interface Target {
  readonly id?: string | undefined;
  readonly name: string;
}

/** Maximum concurrent calls. */
const AT_ONCE = 6;

/** The selected objects, page by page. */
export async function* objectsOf(
  bucket: string,
  targets: readonly Target[],
): AsyncGenerator<{ readonly id: string; readonly name: string; readonly target: Target }> {
  for (const target of targets) {
    const { id, name } = target;
    if (id !== undefined) yield { id, name, target };
    else for await (const object of cloud.listObjects(bucket, { prefix: name })) yield { ...object, target };
  }
}

export async function eachOf<T>(
  list: Iterable<T> | AsyncIterable<T>,
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  const rest = (async function* () {
    yield* list;
  })();
  const worker = async () => {
    for await (const one of rest) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** A large folder needs more calls than the cloud accepts within seconds: it says when to continue. */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CloudError) || error.status !== 429) throw error;
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterSeconds ?? 1) * 1000));
    }
  }
}
