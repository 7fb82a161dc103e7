/**
 * Unpacks a recovery point without Cloudlet: docs/recovery-format.md in code, by Node's built-in modules
 * only (22.15 or later, which has zstd). It writes the files of the data directory and changes none of
 * them; `cloudlet recovery restore` also makes them ready for a first start.
 *
 *   node scripts/unpack-recovery.js POINTS_DIR KEY_FILE OUT_DIR [POINT_ID]
 *
 * Points in a bucket of S3 are first copied to POINTS_DIR: all objects whose keys begin with the prefix, by
 * any S3 client, such as `rclone copy`. Without a point's id it takes the newest complete one that was not
 * deleted. It names what is missing, writes the rest, and then exits with 1.
 */
import { createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';

const FORMAT = 1;
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const ZSTD = 1;
const LARGEST_PIECE = 4 * 2 ** 20;
const ZEROS = Buffer.alloc(LARGEST_PIECE);

/** A message for a person, in one line. */
class Problem extends Error {}

/** The 32 bytes of a recovery key as text. Case, spaces and dashes do not matter. */
function recoveryKey(text) {
  const plain = text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '')
    .replace(/^clr/, '')
    .replace(/o/g, '0')
    .replace(/[il]/g, '1');
  if (!/^[0-9a-hjkmnp-tv-z]{56}$/.test(plain)) {
    throw new Problem('the recovery key must be clr- followed by 56 letters and digits');
  }
  const bits = [...plain].map((digit) => DIGITS.indexOf(digit).toString(2).padStart(5, '0')).join('');
  const byte = (at) => Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2);
  const key = Buffer.from(Array.from({ length: 32 }, (_, at) => byte(at)));
  const sum = [...createHash('sha256').update(key).digest().subarray(0, 3)]
    .map((part) => part.toString(2).padStart(8, '0'))
    .join('')
    .slice(0, 20);
  if (bits.slice(260) !== sum) throw new Problem('the recovery key is mistyped: its checksum does not match');
  return key;
}

function derive(key, salt, info) {
  return Buffer.from(hkdfSync('sha256', key, salt, info, 32));
}

/** `nonce (12) · AES-256-GCM · tag (16)`; undefined if the bytes or the key are wrong. */
function decrypt(key, sealed, context) {
  if (sealed.length < 28) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12));
  decipher.setAuthTag(sealed.subarray(-16));
  if (context !== undefined) decipher.setAAD(Buffer.from(context));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  } catch {
    return undefined;
  }
}

/** A sealed piece or manifest. Throws Problem if it was changed. */
function unseal(key, sealed, context) {
  const content = decrypt(key, sealed, context);
  if (content === undefined) throw new Problem(`${context} is damaged`);
  const bytes = content.subarray(1);
  return content[0] === ZSTD ? zstdDecompressSync(bytes) : bytes;
}

class Repository {
  #location;
  #naming;
  #sealing;
  #manifests;

  constructor(location, keyText) {
    this.#location = location;
    const head = join(location, 'repository.json');
    if (!existsSync(head)) throw new Problem(`${location} is not a recovery repository: ${head} is missing`);
    const { format, repository_id: id, sealed_key: sealed } = JSON.parse(readFileSync(head, 'utf8'));
    if (format !== FORMAT)
      throw new Problem(`${location} has format ${format}, but this script supports ${FORMAT}`);
    const slot = derive(recoveryKey(keyText), id, 'cloudlet recovery key');
    const key = decrypt(slot, Buffer.from(sealed, 'base64'));
    if (key === undefined) throw new Problem('the recovery key does not match this repository');
    this.#naming = derive(key, '', 'cloudlet pieces name');
    this.#sealing = derive(key, '', 'cloudlet pieces seal');
    this.#manifests = derive(key, '', 'cloudlet manifests');
  }

  /** Each additional mark reverses the previous one. */
  #isDeleted(id) {
    const folder = join(this.#location, 'deleting');
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return names.filter((name) => name.replace(/\.\d+$/, '') === id).length % 2 === 1;
  }

  /** `wanted`: its id; undefined: the newest complete one, otherwise the newest, without deleted ones. */
  manifest(wanted) {
    const ids = readdirSync(join(this.#location, 'points')).filter((id) => /^drp-[0-9a-z]+$/.test(id));
    if (wanted !== undefined && !ids.includes(wanted)) {
      throw new Problem(`recovery point ${wanted} does not exist; available: ${ids.join(', ') || 'none'}`);
    }
    const read = (id) => {
      const sealed = readFileSync(join(this.#location, 'points', id));
      return JSON.parse(unseal(this.#manifests, sealed, id).toString('utf8'));
    };
    if (wanted !== undefined) return read(wanted);
    const readable = ids.flatMap((id) => {
      try {
        if (this.#isDeleted(id)) throw new Problem('it was deleted; pass its ID to unpack it');
        return [read(id)];
      } catch (error) {
        console.error(`skipped recovery point ${id}: ${error.message}`);
        return [];
      }
    });
    readable.sort((a, b) => (a.cut_at < b.cut_at ? 1 : -1));
    const newest = readable.find(({ gaps }) => gaps.length === 0) ?? readable[0];
    for (const { point_id: id } of readable.slice(0, readable.indexOf(newest)))
      console.error(`skipped recovery point ${id}: it is partial; pass its ID to unpack it`);
    if (newest === undefined) throw new Problem('there is no readable recovery point that was not deleted');
    return newest;
  }

  piece(name) {
    const file = join(this.#location, 'pieces', name.slice(0, 2), name);
    if (!existsSync(file)) throw new Problem(`piece ${name} is missing`);
    const bytes = unseal(this.#sealing, readFileSync(file), name);
    const found = createHmac('sha256', this.#naming).update(bytes).digest('hex');
    if (found !== name) throw new Problem(`piece ${name} does not match its checksum`);
    return bytes;
  }

  /** The lines of a component's index, which may be longer than the maximum string. */
  *entries({ index }) {
    let rest = Buffer.alloc(0);
    for (const name of index) {
      rest = Buffer.concat([rest, this.piece(name)]);
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
        yield JSON.parse(rest.subarray(0, end).toString('utf8'));
        rest = rest.subarray(end + 1);
      }
    }
  }
}

/** Removes the file again if one of its pieces is missing. */
function write(repository, out, { path, mode, size_bytes: size, pieces }) {
  if (path.startsWith('/') || path.startsWith('..') || normalize(path) !== path) {
    throw new Problem('its path is outside the output directory');
  }
  const target = join(out, path);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const file = openSync(target, 'wx', mode);
  try {
    let at = 0;
    for (const name of pieces) {
      const bytes = repository.piece(name);
      // Holes remain holes: disks mostly consist of them.
      const isHole = bytes.equals(ZEROS.subarray(0, bytes.length));
      const written = isHole ? bytes.length : writeSync(file, bytes, 0, bytes.length, at);
      if (written < bytes.length) throw new Problem('it could not be written completely: the disk is full');
      at += bytes.length;
    }
    ftruncateSync(file, at);
    if (at !== size) throw new Problem(`it has ${at} bytes instead of ${size}`);
  } catch (error) {
    rmSync(target);
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Number of missing files. */
function unpack([location, keyFile, out, wanted]) {
  if (out === undefined) {
    throw new Problem('usage: node scripts/unpack-recovery.js POINTS_DIR KEY_FILE OUT_DIR [POINT_ID]');
  }
  if (existsSync(out) && readdirSync(out).length > 0) throw new Problem(`${out} is not empty`);
  const repository = new Repository(location, readFileSync(keyFile, 'utf8'));
  const { point_id: id, cut_at: cutAt, components, gaps } = repository.manifest(wanted);
  mkdirSync(out, { recursive: true, mode: 0o700 });
  let [files, missing] = [0, 0];
  const attempt = (what, work) => {
    try {
      work();
    } catch (error) {
      missing++;
      console.error(`missing: ${what}: ${error.message}`);
    }
  };
  for (const component of components) {
    attempt(`the rest of ${component.name}`, () => {
      for (const entry of repository.entries(component)) {
        attempt(entry.path, () => {
          write(repository, out, entry);
          files++;
        });
      }
    });
  }
  for (const { component, reason } of gaps)
    console.error(`not included in the recovery point: ${component}: ${reason}`);
  console.log(`${id}, taken at ${cutAt} UTC: ${files} files unpacked to ${out}, ${missing} missing`);
  return missing;
}

try {
  process.exitCode = unpack(process.argv.slice(2)) === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  console.error(`unpack-recovery: ${error.message}`);
  process.exitCode = 1;
}
