/** A separate network with an outside for a test, so that it neither changes nor needs the host's. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { notInstalled } from '../../scripts/installed.ts';
import { NO_OTHER_USERS } from '../harness/cloud-process.ts';

/** The outside from the view of the test: a public address, a private one, and a cloud's metadata service. */
export const OUTSIDE = '203.0.113.10';
export const NEIGHBOUR = '10.99.0.53';
export const METADATA = '169.254.169.254';
/** The near end of the cable. */
export const HOST_ADDRESSES = ['203.0.113.1', '10.99.0.1'];
/** Every HTTP server of the outside listens here and answers OUTSIDE_SAYS. */
export const OUTSIDE_PORT = 7000;
export const OUTSIDE_SAYS = 'hello from the outside';

const INSIDE = 'inside';

/** Why such a network cannot be created here, or false. */
export function cannotMakeNetworks(): string | false {
  if (NO_OTHER_USERS) return NO_OTHER_USERS;
  const missing = notInstalled('nft', 'ip', 'mount', 'nsenter');
  if (missing) return missing;
  const hasNamespaces = spawnSync('unshare', ['-n', '-m', 'true']).status === 0;
  return hasNamespaces ? false : 'this host gives no network namespaces';
}

export function isInside(): boolean {
  return process.argv[2] === INSIDE;
}

/**
 * Runs the test file again, in separate network and mount namespaces in which NEIGHBOUR is the name server
 * and only root may open the device of all taps, as on a host without udev. Both are removed with their last
 * process. Resolves with the exit status and the output.
 */
export function runInside(file: string): { readonly status: number | null; readonly output: string } {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-net-'));
  const resolvConf = join(directory, 'resolv.conf');
  writeFileSync(resolvConf, `nameserver ${NEIGHBOUR}\n`);
  const tun = 'mount -t tmpfs none /dev/net && mknod -m 600 /dev/net/tun c 10 200';
  const script = `mount --bind "$0" /etc/resolv.conf && ${tun} && ip link set lo up && exec "$@"`;
  const words = ['-n', '-m', 'sh', '-c', script, resolvConf, process.execPath, file, INSIDE];
  // A test inside another one reports to that one, unless this variable is removed.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8', timeout: 500_000 });
  rmSync(directory, { recursive: true });
  return { status, output: `${stdout}\n${stderr}` };
}

/** `ip` with the arguments of a line. */
export function ip(line: string): void {
  const { status, stderr } = spawnSync('ip', line.split(' '), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${line}: ${stderr}`);
}

const SERVERS = `
  const { createServer } = require('node:http');
  const { createSocket } = require('node:dgram');
  createServer((request, answer) => answer.end(${JSON.stringify(OUTSIDE_SAYS)})).listen(${OUTSIDE_PORT});
  const names = createSocket('udp4').on('message', (query, from) => {
    const end = query.indexOf(0, 12) + 5;
    const answer = Buffer.concat([query.subarray(0, end), Buffer.from('c00c000100010000003c0004cb00710a', 'hex')]);
    const isA = query.readUInt16BE(end - 4) === 1;
    answer.writeUInt16BE(0x8180, 2);
    answer.writeUInt16BE(isA ? 1 : 0, 6);
    answer.writeUInt32BE(0, 8);
    names.send(isA ? answer : answer.subarray(0, end), from.port, from.address);
  });
  names.bind(53, () => process.stdout.write('ready'));
`;

/**
 * Creates the outside: another namespace at the far end of a cable, with servers, and a name server that
 * resolves every name to OUTSIDE. Returns the function that removes it.
 */
export async function makeOutside(): Promise<() => void> {
  const far = spawn('unshare', ['-n', process.execPath, '-e', SERVERS], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(far.stdout, 'data');
  const inFar = (line: string) => {
    const words = ['-t', String(far.pid), '-n', 'ip', ...line.split(' ')];
    const { status, stderr } = spawnSync('nsenter', words, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`ip ${line}: ${stderr}`);
  };
  ip(`link add near type veth peer name far netns ${far.pid}`);
  for (const address of HOST_ADDRESSES) ip(`addr add ${address}/24 dev near`);
  ip('link set near up');
  for (const address of [`${OUTSIDE}/24`, `${NEIGHBOUR}/24`, `${METADATA}/32`])
    inFar(`addr add ${address} dev far`);
  inFar('link set far up');
  ip(`route add ${METADATA} via ${OUTSIDE}`);
  return () => far.kill('SIGKILL');
}
