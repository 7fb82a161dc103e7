/**
 * The known images, which administrators download by name. Only data: each entry has the publisher's
 * address and the way to verify the bytes; see docs/machines.md.
 */

export interface KnownImage {
  readonly title: string;
  readonly version: string;
  readonly architecture: 'x86_64';
  /** https://, without a query. */
  readonly url: string;
  /** Hosts that `url` and `checksums` may redirect to; one that begins with a dot: all below it. */
  readonly redirectHosts: readonly string[];
  readonly algorithm: 'sha256' | 'sha512';
  /** A release that never changes has its checksum here; the others have it in the publisher's file. */
  readonly sum: { readonly pinned: string } | { readonly url: string };
  /** Approximate size, for people; the server announces the exact one. */
  readonly aboutBytes: number;
  /** Default user of the image. The keys of a machine are for root, too. */
  readonly loginUser: string;
  /** Whether cloud-init in the image reads the machine's keys and user data. */
  readonly hasCloudInit: boolean;
}

const MB = 1_000_000;
const DEBIAN = 'https://cloud.debian.org/images/cloud';
const UBUNTU = 'https://cloud-images.ubuntu.com/releases';
const ALPINE = 'https://dl-cdn.alpinelinux.org/alpine';
const FEDORA = 'https://dl.fedoraproject.org/pub/fedora/linux/releases';
const ALPINE_324 = `${ALPINE}/v3.24/releases/cloud/generic_alpine-3.24.1-x86_64-bios-cloudinit-r0.qcow2`;
const ALPINE_322 = `${ALPINE}/v3.22/releases/cloud/generic_alpine-3.22.5-x86_64-bios-cloudinit-r0.qcow2`;

/** Keyed by the name that accounts give as the image of a machine. */
export const KNOWN_IMAGES: ReadonlyMap<string, KnownImage> = new Map<string, KnownImage>([
  [
    'debian-13',
    {
      title: 'Debian 13 (trixie)',
      version: '13',
      architecture: 'x86_64',
      url: `${DEBIAN}/trixie/latest/debian-13-genericcloud-amd64.qcow2`,
      redirectHosts: ['.ftp.acc.umu.se'],
      algorithm: 'sha512',
      sum: { url: `${DEBIAN}/trixie/latest/SHA512SUMS` },
      aboutBytes: 340 * MB,
      loginUser: 'debian',
      hasCloudInit: true,
    },
  ],
  [
    'debian-12',
    {
      title: 'Debian 12 (bookworm)',
      version: '12',
      architecture: 'x86_64',
      url: `${DEBIAN}/bookworm/latest/debian-12-genericcloud-amd64.qcow2`,
      redirectHosts: ['.ftp.acc.umu.se'],
      algorithm: 'sha512',
      sum: { url: `${DEBIAN}/bookworm/latest/SHA512SUMS` },
      aboutBytes: 340 * MB,
      loginUser: 'debian',
      hasCloudInit: true,
    },
  ],
  [
    'ubuntu-26.04',
    {
      title: 'Ubuntu 26.04 LTS (resolute)',
      version: '26.04',
      architecture: 'x86_64',
      url: `${UBUNTU}/resolute/release/ubuntu-26.04-server-cloudimg-amd64.img`,
      redirectHosts: [],
      algorithm: 'sha256',
      sum: { url: `${UBUNTU}/resolute/release/SHA256SUMS` },
      aboutBytes: 800 * MB,
      loginUser: 'ubuntu',
      hasCloudInit: true,
    },
  ],
  [
    'ubuntu-24.04',
    {
      title: 'Ubuntu 24.04 LTS (noble)',
      version: '24.04',
      architecture: 'x86_64',
      url: `${UBUNTU}/noble/release/ubuntu-24.04-server-cloudimg-amd64.img`,
      redirectHosts: [],
      algorithm: 'sha256',
      sum: { url: `${UBUNTU}/noble/release/SHA256SUMS` },
      aboutBytes: 630 * MB,
      loginUser: 'ubuntu',
      hasCloudInit: true,
    },
  ],
  [
    'alpine-3.24',
    {
      title: 'Alpine Linux 3.24',
      version: '3.24.1',
      architecture: 'x86_64',
      url: ALPINE_324,
      redirectHosts: [],
      algorithm: 'sha512',
      sum: { url: `${ALPINE_324}.sha512` },
      aboutBytes: 184 * MB,
      loginUser: 'alpine',
      hasCloudInit: true,
    },
  ],
  [
    'alpine-3.22',
    {
      title: 'Alpine Linux 3.22',
      version: '3.22.5',
      architecture: 'x86_64',
      url: ALPINE_322,
      redirectHosts: [],
      algorithm: 'sha512',
      sum: { url: `${ALPINE_322}.sha512` },
      aboutBytes: 185 * MB,
      loginUser: 'alpine',
      hasCloudInit: true,
    },
  ],
  [
    'fedora-44',
    {
      title: 'Fedora Cloud 44',
      version: '44-1.7',
      architecture: 'x86_64',
      url: `${FEDORA}/44/Cloud/x86_64/images/Fedora-Cloud-Base-Generic-44-1.7.x86_64.qcow2`,
      redirectHosts: [],
      algorithm: 'sha256',
      sum: { pinned: '28680fe5b371a5a82ebf43a31926e086a168e59949d03969c5093e7071f90b7f' },
      aboutBytes: 580 * MB,
      loginUser: 'fedora',
      hasCloudInit: true,
    },
  ],
  [
    'fedora-43',
    {
      title: 'Fedora Cloud 43',
      version: '43-1.6',
      architecture: 'x86_64',
      url: `${FEDORA}/43/Cloud/x86_64/images/Fedora-Cloud-Base-Generic-43-1.6.x86_64.qcow2`,
      redirectHosts: [],
      algorithm: 'sha256',
      sum: { pinned: '846574c8a97cd2d8dc1f231062d73107cc85cbbbda56335e264a46e3a6c8ab2f' },
      aboutBytes: 560 * MB,
      loginUser: 'fedora',
      hasCloudInit: true,
    },
  ],
]);
