/** What a guest learns of itself when it boots: a NoCloud seed, as cloud-init reads it. */
import type { GuestSpec } from '../../compute/hypervisor.ts';
import { isoImage } from './iso-image.ts';

/**
 * Type and key as they are; of the comment only what means nothing to YAML. Lines of any other form, such as
 * those that begin with options, are left out.
 */
function plainKey(line: string): string | null {
  const match = /^([a-z0-9][a-z0-9@.-]*) (AAAA[A-Za-z0-9+/]*={0,2})(?:\s+(.*))?$/.exec(line.trim());
  if (match === null) return null;
  const comment = (match[3] ?? '').replace(/[^A-Za-z0-9@._-]+/g, '_');
  return [match[1], match[2], comment].join(' ').trim();
}

function yamlList(name: string, items: readonly string[]): string {
  return items.length === 0 ? '' : `${name}:\n${items.map((item) => `  - ${item}\n`).join('')}`;
}

/** The seed's files by name. */
export function seedFiles(spec: Pick<GuestSpec, 'vmId' | 'hostname' | 'sshKeys' | 'userData' | 'network'>) {
  const keys = spec.sshKeys.map(plainKey).filter((key) => key !== null);
  return {
    // The same for the guest's whole life: a new id would make cloud-init set the machine up again.
    'meta-data': `instance-id: ${spec.vmId}\nlocal-hostname: ${spec.hostname}\n${yamlList('public-keys', keys)}`,
    'user-data': spec.userData ?? `#cloud-config\n${yamlList('ssh_authorized_keys', keys)}`,
    // Beneath the user's own. Keys open root on every image, as they do on the built-in one.
    'vendor-data': '#cloud-config\ndisable_root: false\nssh_pwauth: false\n',
    'network-config':
      'version: 2\nethernets:\n  primary:\n    match:\n' +
      `      macaddress: "${spec.network.mac}"\n    dhcp4: true\n`,
  };
}

/** The seed as a disk image with the label that cloud-init looks for. */
export function seedImage(spec: Parameters<typeof seedFiles>[0]): Buffer {
  const files = Object.entries(seedFiles(spec));
  return isoImage(
    'cidata',
    files.map(([name, text]) => ({ name, content: Buffer.from(text) })),
  );
}
