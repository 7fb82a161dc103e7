/** Runs the doors on a thread of its own: no byte of a database goes through Cloudlet's event loop. */
import { parentPort } from 'node:worker_threads';
import { ProxyDoors } from './proxy-doors.ts';
import type { ProxyCall } from './server-proxy.ts';

const port = parentPort;
if (port === null) throw new Error('not a thread');
const doors = new ProxyDoors((door) => port.postMessage({ wanted: door }));

port.on('message', async ({ id, call }: { readonly id: number; readonly call: ProxyCall }) => {
  try {
    port.postMessage({ id, answer: await answer(call) });
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    port.postMessage({ id, failure: { code, message } });
  }
});

function answer(call: ProxyCall): unknown {
  if (call.kind === 'open') return doors.open(call.door);
  if (call.kind === 'shut') return doors.shut(call.name);
  if (call.kind === 'lead') return doors.lead(call.name, call.port);
  if (call.kind === 'refuse') return doors.refuse(call.name, Buffer.from(call.reply));
  if (call.kind === 'end') return doors.endConnections(call.name);
  return doors.figures(call.name);
}
