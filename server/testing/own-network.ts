/** Scripts of tests that change the network of the host: each runs in a separate network. */
import { spawnSync } from 'node:child_process';

const TIMEOUT_MS = 120_000;

/** Why scripts cannot have a separate network here; false: they can. For the `skip` of tests. */
export function noOwnNetwork(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  const probe = 'PATH=$PATH:/usr/sbin:/sbin; ip link && nft list ruleset';
  const isPossible = spawnSync('unshare', ['-n', 'sh', '-c', probe]).status === 0;
  return isPossible ? false : 'this host gives no network namespaces';
}

/** Runs a TypeScript module in a network with only a loopback interface. */
export function runInOwnNetwork(script: string): { readonly stdout: string; readonly stderr: string } {
  const node = [process.execPath, '--input-type=module-typescript', '-e', script];
  const words = ['-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...node];
  return spawnSync('unshare', words, { encoding: 'utf8', timeout: TIMEOUT_MS });
}
