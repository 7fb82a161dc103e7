/** Where ports of a guest behind QEMU's own network are reached on this host: chosen for each run. */
import { isIPv4 } from 'node:net';
import type { GuestEndpoint } from '../../compute/hypervisor.ts';
import { AppError } from '../../platform/errors.ts';
import type { GuestRun } from './guest-run.ts';

/** By ports of the guest. */
export type Forwards = Readonly<Record<number, GuestEndpoint>>;

/** Above those that need privilege, below those that the kernel gives to anybody. */
const FIRST_PORT = 20_000;
/** So many programs that listen at every address, in a row, no host has. */
const MAX_REFUSED = 1000;

/**
 * Makes QEMU listen for these ports at `host`, a loopback address of this guest alone. A port that is not to
 * be had, because another program listens at every address, is passed over. Throws `engine_unavailable`, and
 * QmpErrors.
 */
export async function addForwards(
  run: Pick<GuestRun, 'command'>,
  host: string,
  guestPorts: readonly number[],
): Promise<Forwards> {
  if (!isIPv4(host) || !host.startsWith('127.')) throw new Error('not an address for a forward');
  const forwards: Record<number, GuestEndpoint> = {};
  let next = FIRST_PORT;
  for (let missing = guestPorts; missing.length > 0; ) {
    const tries = missing.map((guestPort) => ({ guestPort, port: next++ }));
    // Sent together: the guest waits for them.
    const answers = await Promise.all(
      tries.map(({ port, guestPort }) => add(run, { host, port }, guestPort)),
    );
    for (const [index, { guestPort, port }] of tries.entries()) {
      if (answers[index] === '') forwards[guestPort] = { host, port };
    }
    missing = missing.filter((guestPort) => forwards[guestPort] === undefined);
    if (next > FIRST_PORT + guestPorts.length + MAX_REFUSED) throw nothingFree(host, answers.find(Boolean));
  }
  return forwards;
}

/** Resolves with what QEMU says to it; nothing: it is done. */
async function add(
  run: Pick<GuestRun, 'command'>,
  { host, port }: GuestEndpoint,
  guestPort: number,
): Promise<string> {
  const line = `hostfwd_add net0 tcp:${host}:${port}-:${guestPort}`;
  const answer = await run.command('human-monitor-command', { 'command-line': line });
  return String(answer).trim();
}

function nothingFree(host: string, words: string | undefined): AppError {
  const detail = `QEMU cannot listen at ${host}, an address of this host: ${words ?? 'it says nothing'}`;
  const hint = 'see what of this host keeps programs from listening on ports from 20000 on';
  return new AppError('engine_unavailable', detail, { hint });
}
