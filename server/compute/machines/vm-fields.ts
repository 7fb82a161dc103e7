/** Validates the fields of a new machine. */
import { assertFields, type FieldProblem } from '../../platform/errors.ts';
import { DEFAULT_IMAGE } from '../images/images.ts';
import { findInstanceType, INSTANCE_TYPES, type InstanceType } from '../instance-types.ts';
import type { NewVm } from '../schema.ts';

const USER_DATA_MAX_BYTES = 64 * 1024;
/** SSH and the usual web ports. */
export const ALWAYS_OPEN = [22, 80, 443, 8080];

export interface CheckedVm {
  readonly name: string;
  readonly type: InstanceType;
  readonly sshKeys: readonly string[];
  readonly userData: string | null;
  readonly databases: readonly string[];
  /** Ascending. */
  readonly ports: readonly number[];
}

/** Throws `invalid_request` naming every invalid field. */
export function assertVmFields(given: Partial<NewVm>): void {
  const problems: FieldProblem[] = [];
  const note = (field: string, message: string | undefined) => {
    if (message !== undefined) problems.push({ field, message });
  };
  const { name, instance_type, tags = '', ssh_keys = [], user_data = '', image = DEFAULT_IMAGE } = given;
  if (name !== undefined) note('name', vmNameProblem(name.trim()));
  if (instance_type !== undefined) note('instance_type', typeProblem(instance_type));
  note('tags', tagsProblem(tags));
  for (const [index, line] of ssh_keys.entries()) note(`ssh_keys.${index}`, sshKeyProblem(line.trim()));
  note('user_data', userDataProblem(user_data, image));
  const variables = (given.databases ?? []).map(variableOf);
  for (const [index, variable] of variables.entries()) {
    const isSecond = variables.indexOf(variable) < index;
    note(
      `databases.${index}`,
      isSecond
        ? `needs the variable ${variable}, which another database in the list already uses`
        : undefined,
    );
  }
  assertFields(problems);
}

/** Throws the errors of assertVmFields. */
export function checkNewVm(input: NewVm): CheckedVm {
  assertVmFields(input);
  const type = findInstanceType(input.instance_type);
  if (type === undefined) throw new Error('a known instance type is missing');
  const sshKeys = (input.ssh_keys ?? []).map((line) => line.trim());
  const ports = [...new Set([...ALWAYS_OPEN, ...(input.ports ?? [])])].sort((a, b) => a - b);
  const { databases = [], user_data } = input;
  return { name: input.name.trim(), type, sshKeys, userData: user_data || null, databases, ports };
}

/** `SHOP_1_URL` for the database `shop-1`. */
export function variableOf(database: string): string {
  return `${database.toUpperCase().replace(/[^A-Z0-9]/g, '_')}_URL`;
}

function typeProblem(name: string): string | undefined {
  if (findInstanceType(name) !== undefined) return undefined;
  return `must be one of ${INSTANCE_TYPES.map((known) => known.name).join(', ')}`;
}

function tagsProblem(tags: string): string | undefined {
  if (!tags.isWellFormed()) return 'must be well-formed Unicode';
  return /\p{Cc}/u.test(tags) ? 'must have no control characters' : undefined;
}

function userDataProblem(text: string, image: string): string | undefined {
  if (!text.isWellFormed() || text.includes('\0')) return 'must be text without NUL';
  const bytes = Buffer.byteLength(text);
  if (bytes > USER_DATA_MAX_BYTES) return `must have at most ${USER_DATA_MAX_BYTES} bytes`;
  return text === '' ? undefined : idleProblem(text, image);
}

/** Beginnings of all cloud-init user-data formats, after leading blanks. */
const CLOUD_INIT = [
  ...['#!', '#cloud-config', '#cloud-boothook', '#include', '#part-handler', '## template: jinja'],
  ...['content-type:', 'mime-version:'],
];

/** The problem with user data that the image's guest would not run. */
function idleProblem(text: string, image: string): string | undefined {
  if (text.startsWith('\ufeff')) return 'begins with a byte order mark; save it as UTF-8 without one';
  if (/^#!.*\r\n/.test(text)) return 'has Windows line endings (CR LF); use LF';
  if (image !== DEFAULT_IMAGE) {
    const begin = text.trimStart().slice(0, 20).toLowerCase();
    const isRun = CLOUD_INIT.some((kind) => begin.startsWith(kind));
    return isRun ? undefined : 'must begin with #! or #cloud-config';
  }
  const isKeys = /^#cloud-config\b/.test(text) && /^ssh_authorized_keys:/m.test(text);
  if (text.startsWith('#!') || isKeys) return undefined;
  return `must begin with #!, for example #!/bin/sh: the image ${image} runs only scripts`;
}

const TYPES = [
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
];
const MAX_LENGTH = 16 * 1024;
/** The type with its length, and at least the 32 bytes of the shortest key. */
const MIN_BLOB_BYTES = 4 + 11 + 4 + 32;

/** The problem with an SSH public key line, or undefined. */
export function sshKeyProblem(line: string): string | undefined {
  const text = line.trim();
  if (text.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/.test(text) || !text.isWellFormed()) {
    return 'must be one line without control characters';
  }
  const [type = '', blob = ''] = text.split(/[ \t]+/);
  if (type.startsWith('-----BEGIN')) return 'must be a public key, not a private one';
  if (!TYPES.includes(type)) return `must begin with one of ${TYPES.join(', ')}`;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(blob) || blob.length % 4 !== 0)
    return 'has no base64 key after the type';
  const bytes = Buffer.from(blob, 'base64');
  if (bytes.length < MIN_BLOB_BYTES) return 'has a key that is too short';
  const inner = bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString('latin1');
  return inner === type ? undefined : `has the type ${type}, but the key data has another`;
}

/** Machine names, and the host name derived from one. */
const MAX_CHARACTERS = 128;

/** The problem with a name (already trimmed), or undefined. */
export function vmNameProblem(name: string): string | undefined {
  const length = [...name].length;
  if (!name.isWellFormed()) return 'must be well-formed Unicode';
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'must have no control characters or line breaks';
  // Invisible characters may join visible ones, but are not a name.
  if (!/[^\p{C}\p{Z}\p{M}]/u.test(name)) return 'must have a visible character';
  return length <= MAX_CHARACTERS ? undefined : `must have at most ${MAX_CHARACTERS} characters`;
}
