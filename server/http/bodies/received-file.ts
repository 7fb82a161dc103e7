/** The file of a form, read while it arrives. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { invalidField } from '../../platform/errors.ts';
import type { RouteInput } from '../route.ts';
import { unknownFields } from '../validate.ts';
import { readForm } from './multipart.ts';

type Input = RouteInput<unknown, unknown, unknown>;

/** Aborts when the client disconnects before the response, unless it asked for an asynchronous one. */
export function closeOf({ raw }: Input['reply']): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** Ends the input of `work` only when the form is complete and the call is identified. */
export async function receiveFile<T>(
  { request, identify }: Pick<Input, 'request' | 'identify'>,
  form: Parameters<typeof unknownFields>[2],
  work: (file: Readable) => Promise<T>,
): Promise<T> {
  const stream = new PassThrough();
  // A failure is reported by the promises below; the stream may have no reader yet.
  stream.on('error', () => {});
  const hash = createHash('sha256');
  const load = work(stream);
  const read = readForm(request.raw, {
    write: (chunk) => {
      hash.update(chunk);
      // After a refusal the rest of the form is discarded, so that the connection can be reused.
      if (stream.destroyed || stream.write(Buffer.from(chunk))) return undefined;
      return Promise.race([once(stream, 'drain'), load]).then(
        () => {},
        () => {},
      );
    },
  }).then(({ fields, file }) => {
    unknownFields(request, fields.keys(), form);
    if (file === undefined) throw invalidField('file', 'is required');
    identify(hash.digest('hex'));
    stream.end();
  });
  read.catch((error: Error) => stream.destroy(error));
  // The first error wins; finished work stops reading the form.
  load.then(
    () => stream.destroy(),
    (error: Error) => stream.destroy(error),
  );
  try {
    await Promise.race([read, load]);
    await read;
  } catch (error) {
    // Only the complete form identifies a retry, which gets its stored response even if the
    // database is gone.
    if (request.headers['idempotency-key'] !== undefined) await read;
    throw error;
  }
  return load;
}
