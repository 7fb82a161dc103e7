/** Runs the listeners on a thread of its own: no byte of a database goes through Cloudlet's event loop. */
import { parentPort } from 'node:worker_threads';
import { ProxyListeners } from './proxy-listeners.ts';
import type { ProxyCall } from './server-proxy.ts';

const port = parentPort;
if (port === null) throw new Error('not a thread');
const listeners = new ProxyListeners((listener) => port.postMessage({ wanted: listener }));

port.on('message', async ({ id, call }: { readonly id: number; readonly call: ProxyCall }) => {
  try {
    port.postMessage({ id, answer: await answer(call) });
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    port.postMessage({ id, failure: { code, message } });
  }
});

function answer(call: ProxyCall): unknown {
  if (call.kind === 'open') return listeners.open(call.listener);
  if (call.kind === 'shut') return listeners.shut(call.name);
  if (call.kind === 'lead') return listeners.lead(call.name, call.port);
  if (call.kind === 'refuse') return listeners.refuse(call.name, Buffer.from(call.reply));
  if (call.kind === 'end') return listeners.endConnections(call.name);
  return listeners.figures(call.name);
}
