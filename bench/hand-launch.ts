/** The same QEMU command line as Cloudlet's, launched by hand: the yardstick of starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The launch of a guest's process. */
export interface LaunchLine {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly uid: number;
  readonly gid: number;
  /** The address of QEMU's own forwards of the guest's ports. */
  readonly forwards: Readonly<Record<number, { readonly host: string; readonly port: number }>>;
}

/** Reads it from the running guest of that machine. */
export function launchLineOf(vmId: string): LaunchLine {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [program, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
      if (program?.includes('qemu-system') !== true || !args.some((arg) => arg.includes(vmId))) continue;
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const id = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
      const cwd = readlinkSync(`/proc/${pid}/cwd`);
      const { forwards } = JSON.parse(readFileSync(join(cwd, '..', 'run.json'), 'utf8'));
      return { program, args, cwd, uid: id('Uid'), gid: id('Gid'), forwards };
    } catch {
      // Another process that ended meanwhile.
    }
  }
  throw new Error(`the guest of ${vmId} does not run`);
}

async function tryConnect(open: () => Socket): Promise<Socket> {
  for (;;) {
    const socket = open();
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    if (outcome) return socket;
    await sleep(2);
  }
}

/** Sends one QMP command and waits for its answer. */
async function say(socket: Socket, command: string, words: object = {}): Promise<string> {
  const answer = once(socket, 'data');
  socket.write(`${JSON.stringify({ execute: command, arguments: words })}\n`);
  const [bytes] = await answer;
  return String(bytes);
}

/** Resolves when the processor runs. */
export async function launchByHand({
  program,
  args,
  cwd,
  uid,
  gid,
  forwards,
}: LaunchLine): Promise<ChildProcess> {
  for (const name of readdirSync(cwd)) if (name.endsWith('.sock')) rmSync(join(cwd, name));
  const child = spawn(program, args, { cwd, uid, gid, stdio: 'ignore' });
  const socket = await tryConnect(() => connect(join(cwd, 'qmp.sock')));
  await once(socket, 'data');
  await say(socket, 'qmp_capabilities');
  for (const [guestPort, { host, port }] of Object.entries(forwards)) {
    const line = `hostfwd_add net0 tcp:${host}:${port}-:${guestPort}`;
    await say(socket, 'human-monitor-command', { 'command-line': line });
  }
  await say(socket, 'cont');
  while (!(await say(socket, 'query-status')).includes('"running": true')) await sleep(1);
  socket.destroy();
  return child;
}

/** The address of QEMU's own forward of a port of the guest. */
export function forwardOf({ forwards }: LaunchLine, guestPort: number): { host: string; port: number } {
  const forward = forwards[guestPort];
  if (forward === undefined) throw new Error(`nothing forwards port ${guestPort} of the guest`);
  return forward;
}

/** Resolves when SSH has sent its first bytes there. */
export async function banner({ host, port }: { host: string; port: number }): Promise<void> {
  for (;;) {
    const socket = await tryConnect(() => connect(port, host));
    const said = await Promise.race([
      once(socket, 'data').then(() => true),
      once(socket, 'close').then(() => false),
      // A connection opened before the guest has a network may hang forever.
      sleep(500).then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (said) return;
  }
}
