/** Runs the listeners on its own thread: no byte of a database goes through Cloudlet's event loop. */
import { parentPort } from 'node:worker_threads';
import { ProxyListeners } from './proxy-listeners.ts';
import type { ProxyCall } from './server-proxy.ts';

const port = parentPort;
if (port === null) throw new Error('not a thread');
const listeners = new ProxyListeners({ wanted: (listener) => port.postMessage({ wanted: listener }) });

port.on('message', async ({ id, call }: { readonly id: number; readonly call: ProxyCall }) => {
  try {
    port.postMessage({ id, answer: await listeners.answer(call) });
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    port.postMessage({ id, failure: { code, message } });
  }
});
