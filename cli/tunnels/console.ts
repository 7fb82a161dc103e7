/** The serial console of a machine in this terminal. */
import type { Vm } from '../../sdk/index.ts';
import { isTerminal } from '../environment.ts';
import { ClientError, EXIT } from '../failures.ts';
import { cleaned, printable } from '../output.ts';
import type { Session } from '../sign-in/session.ts';
import { openSocket } from './tunnel.ts';

/** Ctrl+] */
const LEAVE = 0x1d;
const STOPPED = 1000;

/** Shows the machine's output until it stops. `isTyped`: input is sent to it, until Ctrl+]. */
export async function showConsole(
  session: Session,
  { vm_id, name }: Vm,
  { isTyped }: { readonly isTyped: boolean },
): Promise<void> {
  const socket = await openSocket(session, session.cloud.urlOf('openConsole', [vm_id]));
  const { stdin, stdout } = process;
  const isRaw = isTyped && isTerminal(stdin);
  if (isRaw) {
    stdin.setRawMode(true);
    process.stderr.write(`Connected to ${printable(name)}; press Ctrl+] to leave.\r\n`);
  }
  const take = (bytes: Buffer) => {
    const end = isRaw ? bytes.indexOf(LEAVE) : -1;
    if (end !== 0) socket.send(end === -1 ? bytes : bytes.subarray(0, end));
    if (end !== -1) socket.close(STOPPED);
  };
  if (isTyped) stdin.on('data', take).resume();
  try {
    await new Promise<void>((resolve, reject) => {
      const decoder = new TextDecoder();
      socket.on('message', (bytes: Buffer) => {
        // A log is only displayed: control characters are removed.
        if (stdout.write(isTyped ? bytes : cleaned(decoder.decode(bytes, { stream: true })))) return;
        socket.pause();
        stdout.once('drain', () => socket.resume());
      });
      socket.resume();
      socket.on('error', () => {});
      socket.once('close', (code, reason) => {
        if (code === STOPPED) return resolve();
        reject(new ClientError(`the console was closed: ${String(reason) || code}`, EXIT.unavailable));
      });
    });
  } finally {
    if (isRaw) stdin.setRawMode(false);
    stdin.off('data', take).pause();
  }
}
