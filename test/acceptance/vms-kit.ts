/** Shared by the tests of virtual machines. */
import assert from 'node:assert/strict';
import { accessSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { NO_GUEST_IMAGE, notInstalled } from '../../scripts/installed.ts';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { helloDisk, settled, upload } from './images-kit.ts';

const KERNEL = fileURLToPath(new URL('../../build/guest/tiny-kernel', import.meta.url));

/** Why guests cannot run here, or false. For the `skip` of tests. */
export function cannotRunGuests(): string | false {
  const missing = notInstalled('qemu-system-x86_64', 'qemu-img', 'setpriv');
  if (missing) return missing;
  return existsSync(KERNEL) ? false : NO_GUEST_IMAGE;
}

export const NEW_VM = { name: 'web', instance_type: 't2.micro', region: 'us-east-1', tags: 'a,b' };

/** A new machine's path below the API. */
export async function newVm(user: CheckedClient, more: object = {}): Promise<string> {
  const { vm_id } = await user.expect(201, '/api/vms', { json: { ...NEW_VM, ...more } });
  return `/api/vms/${vm_id}`;
}

/**
 * For newVm(): an image whose machines run but do nothing, for tests that do not use their guest. A real one
 * takes 5 seconds of a processor to boot.
 */
export async function idleImage(admin: CheckedClient): Promise<{ readonly image: string }> {
  const { image_id: image } = await upload(admin, helloDisk(), { name: 'idle' });
  assert.equal((await settled(admin, image)).state, 'ready');
  return { image };
}

/** The first received line, or null when none arrives. */
export function firstLine(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 10_000 });
    let text = '';
    const end = (line: string | null) => {
      socket.destroy();
      resolve(line);
    };
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (text.includes('\n')) end(text.slice(0, text.indexOf('\n')).trim());
    });
    socket
      .on('error', () => end(null))
      .on('timeout', () => end(null))
      .on('close', () => end(null));
  });
}

/** The banner of the guest's SSH server. Waits for it. */
export function sshBanner(address: string): Promise<string> {
  // 2222 answers as well, and needs no privilege on the host.
  return eventually('the banner of SSH', () => firstLine(address, 2222));
}

/** Process ids of a machine's guest on this host. */
export function guestPids(vmId: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const words = commandLine(name);
    return words[0]?.includes('qemu-system') && words.some((word) => word.includes(vmId))
      ? [Number(name)]
      : [];
  });
}

function commandLine(pid: string): string[] {
  const path = `/proc/${pid}/cmdline`;
  try {
    accessSync(path);
    return readFileSync(path, 'utf8').split('\0');
  } catch {
    // It ended meanwhile.
    return [];
  }
}

/** Stops and deletes every machine of the account, so that no guest outlives its test. */
export async function removeAll(user: CheckedClient): Promise<void> {
  for (const { vm_id } of await user.expect(200, '/api/vms')) {
    await user.call(`/api/vms/${vm_id}/stop?force=true`, { method: 'POST' });
    await user.call(`/api/vms/${vm_id}`, { method: 'DELETE' });
  }
}
