/** Ports for programs that a test starts. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Above the ports used by Cloudlet and the clouds of tests (OWN_GROUND), and below those for drills. */
const [FIRST, END] = [28_000, 32_700];
const TRIES = 200;

const given = new Set<number>();

/**
 * A port at which no program listens, at any address, and which no call in this process has returned before.
 * The system does not use it for outgoing connections, which would take it before the test's program listens.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST, endOfPorts());
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`none of ${TRIES} ports from ${FIRST} on is free`);
}

/** This many different ports. */
export async function freePorts(count: number): Promise<number[]> {
  return await Array.fromAsync({ length: count }, () => freePort());
}

/** Below the ports of outgoing connections, if enough are left. */
function endOfPorts(): number {
  const [first = END] = ephemeralPorts();
  return first - FIRST >= TRIES ? Math.min(first, END) : END;
}

/** First and last of the ports that the system uses for outgoing connections; []: unknown. */
export function ephemeralPorts(): number[] {
  try {
    return readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number);
  } catch {
    return [];
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen({ port, host: '0.0.0.0', exclusive: true });
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
