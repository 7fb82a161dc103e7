/** The loop of a worker thread: it answers requests of the event loop. */
import { parentPort } from 'node:worker_threads';
import type { BlobFault } from './blob-fault.ts';
import type { Answer, Forget, Numbered, Sent } from './thread-messages.ts';

/** Answers each request with what `answer` returns or resolves to; `asFault` describes a failure. */
export function answerRequests<Request extends object>(
  answer: (request: Request) => unknown,
  asFault: (error: unknown, request: Request) => BlobFault,
): void {
  const slots = new Map<number, SharedArrayBuffer>();

  const withSlot = ({ body, slot, memory }: Sent): Request => {
    if (slot === null) return body as Request;
    if (memory !== null) slots.set(slot, memory);
    return { ...body, slot: slots.get(slot) } as unknown as Request;
  };
  const post = (id: number, body: Answer) => {
    const message: Numbered<Answer> = { id, body };
    parentPort?.postMessage(message);
  };
  const postFault = (id: number, error: unknown, request: Request) => {
    const { kind, code, message } = asFault(error, request);
    post(id, { fault: { kind, code, message } });
  };

  parentPort?.on('message', (message: Sent | Forget) => {
    if ('forget' in message) {
      slots.delete(message.forget);
      return;
    }
    const { id } = message;
    const request = withSlot(message);
    try {
      const reply = answer(request);
      if (reply instanceof Promise) {
        reply.then(
          (settled) => post(id, { reply: settled }),
          (error) => postFault(id, error, request),
        );
      } else post(id, { reply });
    } catch (error) {
      postFault(id, error, request);
    }
  });
}
