/** Sends a list of any length as one bare JSON array at constant memory. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { JSON_TYPE } from './answer.ts';

const FLUSH_CHARACTERS = 64 * 1024;

/**
 * `entries` yields JSON texts. The first is awaited before the head is sent, so that an error found at
 * once is still a proper problem; a later one cuts the connection. Resolves undefined: the response is sent.
 */
export async function streamList(
  request: FastifyRequest,
  reply: FastifyReply,
  entries: AsyncIterable<string>,
): Promise<undefined> {
  const iterator = entries[Symbol.asyncIterator]();
  let next = await iterator.next();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { ...request.answerHeaders, 'content-type': JSON_TYPE });
  try {
    if (request.method === 'HEAD') {
      raw.end();
      return undefined;
    }
    let text = '[';
    let separator = '';
    while (!next.done) {
      text += separator + next.value;
      separator = ',';
      if (text.length >= FLUSH_CHARACTERS) {
        const ready = raw.write(text);
        text = '';
        if (!ready) await drained(raw);
      }
      if (raw.destroyed) return undefined;
      next = await iterator.next();
    }
    raw.end(`${text}]\n`);
  } catch (error) {
    raw.destroy(error as Error);
  } finally {
    await iterator.return?.();
  }
  return undefined;
}

/** Resolves when the response can take more, or is closed. */
function drained(raw: FastifyReply['raw']): Promise<void> {
  return new Promise((resolve) => {
    // Closed while the next entry was awaited: neither event will come any more.
    if (raw.destroyed) return resolve();
    const done = () => {
      raw.off('drain', done);
      raw.off('close', done);
      resolve();
    };
    raw.on('drain', done);
    raw.on('close', done);
  });
}
