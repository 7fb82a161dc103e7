/** The settings that a guest reads when it boots: a NoCloud seed for cloud-init. */
import type { GuestSpec } from '../../../compute/hypervisor.ts';
import { isoImage } from './iso-image.ts';

/**
 * Type and key unchanged; of the comment, only characters without meaning in YAML. Other lines, such as those
 * that begin with options, are left out.
 */
function plainKey(line: string): string | null {
  const match = /^([a-z0-9][a-z0-9@.-]*)[ \t]+(AAAA[A-Za-z0-9+/]*={0,2})(?:\s+(.*))?$/.exec(line.trim());
  if (match === null) return null;
  const comment = (match[3] ?? '').replace(/[^A-Za-z0-9@._-]+/g, '_');
  return [match[1], match[2], comment].join(' ').trim();
}

function yamlList(name: string, items: readonly string[]): string {
  return items.length === 0 ? '' : `${name}:\n${items.map((item) => `  - ${item}\n`).join('')}`;
}

/** Network settings of a guest that has its address itself. */
export interface StaticNetwork {
  /** IPv4 with its prefix. */
  readonly address: string;
  readonly gateway: string;
  readonly resolvers: readonly string[];
}

export type SeedSpec = Pick<
  GuestSpec,
  'vmId' | 'hostname' | 'sshKeys' | 'userData' | 'databaseUris' | 'network'
> & {
  /** null or missing: DHCP. */
  readonly staticNetwork?: StaticNetwork | null;
};

function networkConfig(spec: SeedSpec): string {
  const { privateLink } = spec.network;
  const primary = primaryDevice(spec);
  if (privateLink === undefined) return primary;
  const { mac, address, resolver } = privateLink;
  const names = `    nameservers:\n      addresses: [${resolver}]\n      search: [internal]\n`;
  // Only its own route: other traffic uses the other device.
  return `${primary}  private:\n    match:\n      macaddress: "${mac}"\n    addresses: [${address}]\n${names}`;
}

function primaryDevice({ network, staticNetwork = null }: SeedSpec): string {
  const device = `version: 2\nethernets:\n  primary:\n    match:\n      macaddress: "${network.mac}"\n`;
  if (staticNetwork === null) return `${device}    dhcp4: true\n`;
  const { address, gateway, resolvers } = staticNetwork;
  const names =
    resolvers.length === 0 ? '' : `    nameservers:\n      addresses: [${resolvers.join(', ')}]\n`;
  const route = `    routes:\n      - to: 0.0.0.0/0\n        via: ${gateway}\n`;
  return `${device}    addresses:\n      - ${address}\n${route}${names}`;
}

/** The seed's files by name. */
export function seedFiles(spec: SeedSpec) {
  const keys = spec.sshKeys.map(plainKey).filter((key) => key !== null);
  return {
    // The same for the guest's whole life: a new id would make cloud-init set the machine up again.
    'meta-data': `instance-id: ${spec.vmId}\nlocal-hostname: ${spec.hostname}\n${yamlList('public-keys', keys)}`,
    'user-data': spec.userData ?? `#cloud-config\n${yamlList('ssh_authorized_keys', keys)}`,
    // Below the user's own data. Keys are for root on every image.
    'vendor-data': [
      '#cloud-config\ndisable_root: false\nssh_pwauth: false\n',
      ...[keysCommand(spec), environmentFile(spec)],
    ].join(''),
    'network-config': networkConfig(spec),
    ...(spec.databaseUris === undefined ? {} : { [ENVIRONMENT]: environmentOf(spec.databaseUris) }),
  };
}

/** In the seed, where the built-in image looks at each boot. */
const ENVIRONMENT = 'databases.env';

/** Lines that a shell and systemd read. */
function environmentOf(uris: Readonly<Record<string, string>>): string {
  const lines = Object.entries(uris).map(([name, uri]) => `${name}='${uri.replaceAll("'", '%27')}'\n`);
  return lines.join('');
}

function environmentFile({ databaseUris }: SeedSpec): string {
  if (databaseUris === undefined) return '';
  const content = Buffer.from(environmentOf(databaseUris)).toString('base64');
  const place = `  - path: /etc/cloudlet/${ENVIRONMENT}\n    permissions: "0600"\n`;
  return `write_files:\n${place}    encoding: b64\n    content: ${content}\n`;
}

/**
 * With this command sshd asks for the keys lent to the machine, at the address of its name server.
 * Any POSIX shell runs it; the last of these programs exists wherever cloud-init does.
 */
const keysProgram = (server: string) => `#!/bin/sh
# Prints the SSH keys that the cloud lends to this machine now.
has() { command -v "$1" >/dev/null 2>&1; }
if has curl; then exec curl -q -s -m 3 http://${server}/ssh-keys; fi
if has wget; then exec timeout 3 wget -q -O - http://${server}/ssh-keys; fi
if has bash; then
  exec timeout 3 bash -c '
exec 3<>/dev/tcp/${server}/80
printf "GET /ssh-keys HTTP/1.0\\r\\n\\r\\n" >&3
sed "1,/^\\r\\$/d" <&3
'
fi
# An emulated machine takes seconds to start Python.
exec timeout 20 python3 -ISc '
import socket
asked = socket.create_connection(("${server}", 80), 3)
asked.sendall(b"GET /ssh-keys HTTP/1.0\\r\\n\\r\\n")
print(asked.makefile().read().split("\\n\\n", 1)[1])
'
`;

/** At each boot, so that older machines get it; a command set by the user stays. */
function keysCommand({ network: { privateLink } }: SeedSpec): string {
  if (privateLink === undefined) return '';
  const script = `cd /etc/ssh/sshd_config.d || exit
rm -f zz-cloudlet.conf
[ ! -e /etc/cloudlet/no-lent-keys ] || exit 0
! grep -qis '^[[:space:]]*AuthorizedKeysCommand[[:space:]]' ../sshd_config *.conf || exit 0
mkdir -p /usr/lib/cloudlet
cat >/usr/lib/cloudlet/ssh-keys <<'END'
${keysProgram(privateLink.resolver)}END
chmod 755 /usr/lib/cloudlet /usr/lib/cloudlet/ssh-keys
printf '%s\\n' 'AuthorizedKeysCommand /usr/lib/cloudlet/ssh-keys' 'AuthorizedKeysCommandUser nobody' >zz-cloudlet.conf
`;
  return `bootcmd:\n  - [sh, -c, ${JSON.stringify(script)}]\n`;
}

/** The seed as a disk image with the label that cloud-init looks for. */
export function seedImage(spec: SeedSpec): Buffer {
  const files = Object.entries(seedFiles(spec));
  return isoImage(
    'cidata',
    files.map(([name, text]) => ({ name, content: Buffer.from(text) })),
  );
}
