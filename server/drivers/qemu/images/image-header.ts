/**
 * Detects the type of a disk image by its first bytes, before any program of QEMU opens it. A qcow2
 * file can name other files to read, and its tables can claim any size: anything unusual is refused
 * here. Format: QEMU's docs/interop/qcow2.
 */

/** Bytes that recognizeImage needs from the beginning, or all of a shorter file. */
export const HEADER_BYTES = 64 * 1024;

export interface RecognizedImage {
  readonly format: 'qcow2' | 'raw';
  /** The size that a guest sees, bytes; a multiple of 512. */
  readonly virtualBytes: number;
}

/** Why an image is refused, in words for its uploader. */
export class ImageRefused extends Error {}

const SECTOR = 512;
const QCOW2_MAGIC = 'QFI\xfb';
const V2_LENGTH = 72;
const V3_LENGTH = 104;
const MIN_CLUSTER_BITS = 9;
const MAX_CLUSTER_BITS = 21;
/** QEMU's own bounds. */
const MAX_L1_BYTES = 32 * 2 ** 20;
const MAX_REFCOUNT_TABLE_BYTES = 8 * 2 ** 20;
const MAX_REFCOUNT_ORDER = 6;
const MAX_EXTENSIONS = 64;

const FEATURE_DIRTY = 1n;
const FEATURE_CORRUPT = 2n;
const FEATURE_DATA_FILE = 4n;
const FEATURE_COMPRESSION = 8n;
const FEATURE_EXTENDED_L2 = 16n;
const FEATURES_TAKEN = FEATURE_COMPRESSION | FEATURE_EXTENDED_L2;

const EXTENSION_END = 0;
const EXTENSION_ENCRYPTION = 0x0537be77;
const EXTENSION_DATA_FILE = 0x44415441;
const EXTENSION_BACKING_FORMAT = 0xe2792aca;

/** Files uploaded by mistake, by their first bytes. */
const OTHERS: readonly (readonly [offset: number, magic: string, name: string])[] = [
  [0, 'KDMV', 'a VMDK image'],
  [0, '# Disk DescriptorFile', 'a VMDK description'],
  [0, 'conectix', 'a VHD image'],
  [0, 'vhdxfile', 'a VHDX image'],
  [64, '\x7f\x10\xda\xbe', 'a VDI image'],
  [0, 'QED\0', 'a QED image'],
  [0, 'LUKS\xba\xbe', 'an encrypted volume'],
  [0, '\x1f\x8b', 'compressed with gzip; unpack it first'],
  [0, '\xfd7zXZ\0', 'compressed with xz; unpack it first'],
  [0, '\x28\xb5\x2f\xfd', 'compressed with zstd; unpack it first'],
  [0, 'BZh', 'compressed with bzip2; unpack it first'],
  [0, 'PK\x03\x04', 'a ZIP archive; unpack it first'],
  [257, 'ustar', 'a tar archive; unpack it first'],
  [32_769, 'CD001', 'an installation medium (ISO), not an installed system'],
];

/**
 * The format and the size of an image. `head` is its first HEADER_BYTES, or all of it; `fileBytes` its
 * length. Throws ImageRefused.
 */
export function recognizeImage(head: Buffer, fileBytes: number, maxVirtualBytes: number): RecognizedImage {
  const isQcow2 = begins(head, 0, QCOW2_MAGIC);
  const image = isQcow2 ? readQcow2(head, fileBytes) : readRaw(head, fileBytes);
  if (image.virtualBytes > maxVirtualBytes) {
    const gb = (bytes: number) => Math.ceil(bytes / 2 ** 30);
    throw new ImageRefused(
      `its disk is ${gb(image.virtualBytes)} GB, and at most ${gb(maxVirtualBytes)} GB are allowed`,
    );
  }
  return image;
}

function begins(head: Buffer, offset: number, magic: string): boolean {
  return head.toString('latin1', offset, offset + magic.length) === magic;
}

/** Unstructured bytes are a disk only if they have a boot sector. */
function readRaw(head: Buffer, fileBytes: number): RecognizedImage {
  for (const [offset, magic, name] of OTHERS) {
    if (begins(head, offset, magic)) throw new ImageRefused(`it is ${name}`);
  }
  const isBootable = head.length >= SECTOR && head[510] === 0x55 && head[511] === 0xaa;
  if (!isBootable) throw new ImageRefused('it is neither qcow2 nor a disk with a boot sector');
  return { format: 'raw', virtualBytes: Math.ceil(fileBytes / SECTOR) * SECTOR };
}

function readQcow2(head: Buffer, fileBytes: number): RecognizedImage {
  if (head.length < V2_LENGTH) throw new ImageRefused('its header is cut off');
  const version = head.readUInt32BE(4);
  if (version !== 2 && version !== 3) throw new ImageRefused(`it is qcow2 of an unknown version ${version}`);
  if (head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0) {
    throw new ImageRefused('it needs a backing file');
  }
  const clusterBits = head.readUInt32BE(20);
  if (clusterBits < MIN_CLUSTER_BITS || clusterBits > MAX_CLUSTER_BITS) {
    throw new ImageRefused('its header is damaged: invalid cluster size');
  }
  if (head.readUInt32BE(32) !== 0) throw new ImageRefused('it is encrypted');
  if (head.readUInt32BE(60) !== 0) throw new ImageRefused('it contains snapshots; remove them first');
  const hasExtendedL2 = version === 3 && checkVersion3(head, clusterBits);
  const headerLength = version === 3 ? head.readUInt32BE(100) : V2_LENGTH;
  assertExtensions(head, headerLength, 2 ** clusterBits);
  const size = head.readBigUInt64BE(24);
  if (size === 0n || size > BigInt(Number.MAX_SAFE_INTEGER) || size % BigInt(SECTOR) !== 0n) {
    throw new ImageRefused('its header is damaged: invalid disk size');
  }
  const virtualBytes = Number(size);
  assertTables(head, { fileBytes, virtualBytes, clusterBytes: 2 ** clusterBits, hasExtendedL2 });
  return { format: 'qcow2', virtualBytes };
}

/** True if it has extended L2 entries. */
function checkVersion3(head: Buffer, clusterBits: number): boolean {
  if (head.length < V3_LENGTH) throw new ImageRefused('its header is cut off');
  const features = head.readBigUInt64BE(72);
  if ((features & FEATURE_DATA_FILE) !== 0n) throw new ImageRefused('it keeps its data in another file');
  if ((features & FEATURE_CORRUPT) !== 0n) throw new ImageRefused('it is marked as damaged');
  if ((features & FEATURE_DIRTY) !== 0n)
    throw new ImageRefused('it was not closed properly; repair it first');
  if ((features & ~FEATURES_TAKEN) !== 0n) throw new ImageRefused('it uses unknown features');
  if (head.readUInt32BE(96) > MAX_REFCOUNT_ORDER) {
    throw new ImageRefused('its header is damaged: invalid reference count width');
  }
  const length = head.readUInt32BE(100);
  if (length < V3_LENGTH || length % 8 !== 0 || length > Math.min(head.length, 2 ** clusterBits)) {
    throw new ImageRefused('its header is damaged: invalid header length');
  }
  const compression = length > V3_LENGTH ? head.readUInt8(V3_LENGTH) : 0;
  if (compression > 1) throw new ImageRefused('it uses an unknown compression');
  return (features & FEATURE_EXTENDED_L2) !== 0n;
}

/** Extensions for other files or keys are refused even without the corresponding feature bit. */
function assertExtensions(head: Buffer, from: number, clusterBytes: number): void {
  const end = Math.min(head.length, clusterBytes);
  let at = from;
  for (let count = 0; at + 8 <= end; count++) {
    const type = head.readUInt32BE(at);
    if (type === EXTENSION_END) return;
    if (type === EXTENSION_ENCRYPTION) throw new ImageRefused('it is encrypted');
    if (type === EXTENSION_DATA_FILE) throw new ImageRefused('it keeps its data in another file');
    if (type === EXTENSION_BACKING_FORMAT) {
      throw new ImageRefused('it needs a backing file');
    }
    const length = head.readUInt32BE(at + 4);
    at += 8 + Math.ceil(length / 8) * 8;
    if (count >= MAX_EXTENSIONS || at > end) {
      throw new ImageRefused('its header is damaged: invalid extensions');
    }
  }
}

interface Tables {
  readonly fileBytes: number;
  readonly virtualBytes: number;
  readonly clusterBytes: number;
  readonly hasExtendedL2: boolean;
}

/** The tables lie inside the file, are as long as the disk needs, and not absurdly longer. */
function assertTables(head: Buffer, { fileBytes, virtualBytes, clusterBytes, hasExtendedL2 }: Tables): void {
  const entriesPerL2 = clusterBytes / (hasExtendedL2 ? 16 : 8);
  const l1Bytes = head.readUInt32BE(36) * 8;
  const l1Needed = Math.ceil(virtualBytes / (clusterBytes * entriesPerL2)) * 8;
  const refcountBytes = head.readUInt32BE(56) * clusterBytes;
  const isInside = (offset: bigint, bytes: number) =>
    offset % BigInt(clusterBytes) === 0n && offset > 0n && offset + BigInt(bytes) <= BigInt(fileBytes);
  const isL1Fine = l1Bytes >= l1Needed && l1Bytes <= MAX_L1_BYTES;
  if (!isL1Fine || !isInside(head.readBigUInt64BE(40), l1Bytes)) {
    throw new ImageRefused('its header is damaged: invalid cluster table');
  }
  const isRefcountFine = refcountBytes > 0 && refcountBytes <= MAX_REFCOUNT_TABLE_BYTES;
  if (!isRefcountFine || !isInside(head.readBigUInt64BE(48), refcountBytes)) {
    throw new ImageRefused('its header is damaged: invalid reference count table');
  }
}
