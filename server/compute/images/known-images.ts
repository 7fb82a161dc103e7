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

type Entry = readonly [name: string, image: KnownImage];

/** A release of a publisher: what differs from its other releases. */
interface Release {
  readonly version: string;
  readonly aboutMb: number;
}

function debian(codename: string, { version, aboutMb }: Release): Entry {
  const folder = `${DEBIAN}/${codename}/latest`;
  const image: KnownImage = {
    title: `Debian ${version} (${codename})`,
    version,
    architecture: 'x86_64',
    url: `${folder}/debian-${version}-genericcloud-amd64.qcow2`,
    redirectHosts: ['.ftp.acc.umu.se'],
    algorithm: 'sha512',
    sum: { url: `${folder}/SHA512SUMS` },
    aboutBytes: aboutMb * MB,
    loginUser: 'debian',
    hasCloudInit: true,
  };
  return [`debian-${version}`, image];
}

function ubuntu(codename: string, { version, aboutMb }: Release): Entry {
  const folder = `${UBUNTU}/${codename}/release`;
  const image: KnownImage = {
    title: `Ubuntu ${version} LTS (${codename})`,
    version,
    architecture: 'x86_64',
    url: `${folder}/ubuntu-${version}-server-cloudimg-amd64.img`,
    redirectHosts: [],
    algorithm: 'sha256',
    sum: { url: `${folder}/SHA256SUMS` },
    aboutBytes: aboutMb * MB,
    loginUser: 'ubuntu',
    hasCloudInit: true,
  };
  return [`ubuntu-${version}`, image];
}

function alpine(branch: string, { version, aboutMb }: Release): Entry {
  const file = `generic_alpine-${version}-x86_64-bios-cloudinit-r0.qcow2`;
  const url = `${ALPINE}/v${branch}/releases/cloud/${file}`;
  const image: KnownImage = {
    title: `Alpine Linux ${branch}`,
    version,
    architecture: 'x86_64',
    url,
    redirectHosts: [],
    algorithm: 'sha512',
    sum: { url: `${url}.sha512` },
    aboutBytes: aboutMb * MB,
    loginUser: 'alpine',
    hasCloudInit: true,
  };
  return [`alpine-${branch}`, image];
}

function fedora(pinned: string, { version, aboutMb }: Release): Entry {
  const major = version.replace(/-.*/, '');
  const image: KnownImage = {
    title: `Fedora Cloud ${major}`,
    version,
    architecture: 'x86_64',
    url: `${FEDORA}/${major}/Cloud/x86_64/images/Fedora-Cloud-Base-Generic-${version}.x86_64.qcow2`,
    redirectHosts: [],
    algorithm: 'sha256',
    sum: { pinned },
    aboutBytes: aboutMb * MB,
    loginUser: 'fedora',
    hasCloudInit: true,
  };
  return [`fedora-${major}`, image];
}

const FEDORA_44 = '28680fe5b371a5a82ebf43a31926e086a168e59949d03969c5093e7071f90b7f';
const FEDORA_43 = '846574c8a97cd2d8dc1f231062d73107cc85cbbbda56335e264a46e3a6c8ab2f';

/** Keyed by the name that accounts give as the image of a machine. */
export const KNOWN_IMAGES: ReadonlyMap<string, KnownImage> = new Map<string, KnownImage>([
  debian('trixie', { version: '13', aboutMb: 340 }),
  debian('bookworm', { version: '12', aboutMb: 340 }),
  ubuntu('resolute', { version: '26.04', aboutMb: 800 }),
  ubuntu('noble', { version: '24.04', aboutMb: 630 }),
  alpine('3.24', { version: '3.24.1', aboutMb: 184 }),
  alpine('3.22', { version: '3.22.5', aboutMb: 185 }),
  fedora(FEDORA_44, { version: '44-1.7', aboutMb: 580 }),
  fedora(FEDORA_43, { version: '43-1.6', aboutMb: 560 }),
]);
