/** This computer's ssh through a tunnel: host keys are known in advance, and a key pair is created. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cloud, CloudError, type Vm } from '../../sdk/index.ts';
import { configFolder, homeFolder } from '../environment.ts';
import { ClientError, EXIT, type ExitCode, tell } from '../failures.ts';
import type { Output } from '../output.ts';
import { writePrivateFile } from '../sign-in/private-file.ts';
import type { Session } from '../sign-in/session.ts';
import { runChild } from './child.ts';

/** cloud-init and the image `tiny` print the public host keys on the console between these lines. */
const KEYS = /-----BEGIN SSH HOST KEY KEYS-----([\s\S]*?)-----END SSH HOST KEY KEYS-----/g;
const KEY = /^(?:ssh-(?:rsa|ed25519)|ecdsa-sha2-nistp\d+) [A-Za-z0-9+/]+={0,2}/;
const LOG_BYTES = 2 ** 20;
const POLL_MS = 1000;
/** A machine that has not booted by then may print no keys. */
const BOOT_MS = 60_000;

const knownHosts = () => join(configFolder(), 'known_hosts');
const ownKey = () => join(configFolder(), 'id_ed25519');

/** The public keys that a machine printed last; empty: its log has none. */
function hostKeysIn(log: string): string[] {
  const last = [...log.matchAll(KEYS)].at(-1)?.[1] ?? '';
  return last.split(/\r?\n/).flatMap((line) => KEY.exec(line.trim())?.[0] ?? []);
}

/** The host keys in the machine's log; waits while it boots. */
async function printedKeys(cloud: Cloud, vmId: string): Promise<string[]> {
  let isLast = false;
  for (let waited = 0; ; waited += POLL_MS) {
    const keys = hostKeysIn(await cloud.getVmLog(vmId, { bytes: LOG_BYTES }));
    if (keys.length > 0 || isLast) return keys;
    const { state, ready_at } = await cloud.getVm(vmId);
    // SSH may answer a moment before the keys are printed.
    isLast = state !== 'running' || ready_at !== null || waited >= BOOT_MS;
    await sleep(POLL_MS);
  }
}

/** Adds the machine's host keys for ssh. False: not known yet. */
async function noteHostKeys(cloud: Cloud, { vm_id }: Vm): Promise<boolean> {
  const path = knownHosts();
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  if (lines.some((line) => line.startsWith(`${vm_id} `))) return true;
  const keys = await printedKeys(cloud, vm_id);
  if (keys.length === 0) return false;
  writePrivateFile(path, `${[...lines, ...keys.map((key) => `${vm_id} ${key}`)].join('\n')}\n`);
  return true;
}

/** The key of this client, created on demand. Throws ClientError without ssh-keygen. */
export function ownPublicKey(): string {
  const path = ownKey();
  if (!existsSync(path)) {
    mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
    const args = ['-q', '-t', 'ed25519', '-N', '', '-C', 'cloudlet', '-f', path];
    const { status, error, stderr } = spawnSync('ssh-keygen', args, { encoding: 'utf8' });
    if (status !== 0) throw noOpenSsh('ssh-keygen', error?.message ?? stderr);
  }
  return readFileSync(`${path}.pub`, 'utf8').trim();
}

/** Files with public keys in ~/.ssh. */
function userKeyFiles(): string[] {
  const folder = join(homeFolder(), '.ssh');
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => /^id_\w+\.pub$/.test(name));
  return names.map((name) => join(folder, name));
}

/** The public keys in ~/.ssh. */
export function userPublicKeys(): string[] {
  return userKeyFiles().map((path) => readFileSync(path, 'utf8').trim());
}

/** A word for the shell that ssh runs its ProxyCommand in, with `%` escaped. */
const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`.replaceAll('%', '%%');

/**
 * Lends the key of this client to the machine for two minutes, unless the machine was created with
 * it. If that fails, a key of the user may still open the machine. For API keys that may not lend,
 * nothing is reported.
 */
export async function lendOwnKey(cloud: Cloud, vmId: string, output: Output): Promise<void> {
  try {
    await cloud.lendSshKey(vmId, { public_key: ownPublicKey() });
  } catch (error) {
    const mayNot = error instanceof CloudError && (error.status === 403 || error.status === 404);
    if (!mayNot)
      output.note(`could not add this client's SSH key to the machine: ${tell(error).lines.join(' ')}`);
  }
}

/** The command that connects to the machine's port 22, without secrets. */
function proxyCommand({ profileName }: Session, { vm_id }: Vm): string {
  const own = [process.execPath, process.argv[1] ?? ''].map(quoted).join(' ');
  const profile = profileName === null ? '' : ` --profile ${quoted(profileName)}`;
  return `${own} vm proxy ${vm_id} 22 --lend-key${profile}`;
}

/**
 * The only valid form of an id; another one could be a command for this computer's shell, or a
 * setting of ssh.
 */
const VM_ID = /^vm-[0-9a-z]{26}$/;

/** The settings of ssh for a machine, by their names in ssh_config. Throws ClientError. */
export async function sshSettings(session: Session, vm: Vm): Promise<readonly [string, string][]> {
  if (!VM_ID.test(vm.vm_id)) throw new ClientError('the cloud returned an invalid machine ID');
  // Created here, because messages would be lost in the proxy process.
  ownPublicKey();
  const isKnown = await noteHostKeys(session.cloud, vm);
  const settings: [string, string][] = [
    ['HostName', vm.vm_id],
    ['User', 'root'],
    ['ProxyCommand', proxyCommand(session, vm)],
    ['HostKeyAlias', vm.vm_id],
    ['UserKnownHostsFile', quotedPath(knownHosts())],
    // If an image prints no host key, the first connection accepts its key, and later ones require it.
    ['StrictHostKeyChecking', isKnown ? 'yes' : 'accept-new'],
    ['HashKnownHosts', 'no'],
    // A server disconnects after this many keys, and an agent may offer more first.
    ['IdentitiesOnly', 'yes'],
  ];
  const keys = [ownKey(), ...userKeyFiles().map((path) => path.replace(/\.pub$/, ''))];
  return [...settings, ...keys.map((path) => ['IdentityFile', quotedPath(path)] as [string, string])];
}

const quotedPath = (path: string) => `"${path.replaceAll('%', '%%')}"`;

/** Runs ssh or scp; resolves with its exit code. Throws ClientError if it is missing. */
export async function runSsh(
  program: 'ssh' | 'scp',
  settings: readonly [string, string][],
  args: readonly string[],
): Promise<ExitCode> {
  const options = settings.flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  try {
    return await runChild({ program, args: [...options, ...args] });
  } catch (error) {
    throw noOpenSsh(program, (error as Error).message);
  }
}

/**
 * Makes scp use SFTP if it supports it but does not by default: OpenSSH 8.7 to 8.9. The old
 * protocol needs the program scp on the machine, which `tiny` lacks, and would pass names through a
 * shell.
 */
export function sftpOption(
  versionText = spawnSync('ssh', ['-V'], { encoding: 'utf8' }).stderr ?? '',
): string[] {
  const [, major, minor] = /^OpenSSH_(\d+)\.(\d+)/.exec(versionText) ?? [];
  return Number(major) === 8 && Number(minor) >= 7 ? ['-s'] : [];
}

function noOpenSsh(program: string, why: string): ClientError {
  return new ClientError(
    `${program} cannot be started: ${why.trim()}`,
    EXIT.failure,
    'Install the OpenSSH client',
  );
}
