/** Checks what a new machine is asked to be. */
import { AppError, type FieldProblem } from '../errors.ts';
import { findInstanceType, INSTANCE_TYPES, type InstanceType } from './instance-types.ts';
import { vmNameProblem } from './names.ts';
import type { NewVm } from './schema.ts';
import { sshKeyProblem } from './ssh-keys.ts';

const USER_DATA_MAX_BYTES = 64 * 1024;
/** SSH and the usual web ports. */
const ALWAYS_OPEN = [22, 80, 443, 8080];

export interface CheckedVm {
  readonly name: string;
  readonly type: InstanceType;
  readonly sshKeys: readonly string[];
  readonly userData: string | null;
  /** Ascending. */
  readonly ports: readonly number[];
}

/** Throws `invalid_request` naming every field that breaks its rule. */
export function checkNewVm(input: NewVm): CheckedVm {
  const problems: FieldProblem[] = [];
  const note = (field: string, message: string | undefined) => {
    if (message !== undefined) problems.push({ field, message });
  };
  const name = input.name.trim();
  const type = findInstanceType(input.instance_type);
  const sshKeys = (input.ssh_keys ?? []).map((line) => line.trim());
  note('name', vmNameProblem(name));
  const names = INSTANCE_TYPES.map((known) => known.name).join(', ');
  if (type === undefined) note('instance_type', `must be one of ${names}`);
  note('tags', tagsProblem(input.tags ?? ''));
  for (const [index, line] of sshKeys.entries()) note(`ssh_keys.${index}`, sshKeyProblem(line));
  note('user_data', userDataProblem(input.user_data ?? ''));
  if (type === undefined || problems.length > 0) {
    const detail = problems.map(({ field, message }) => `${field} ${message}`).join('; ');
    throw new AppError('invalid_request', detail, { fields: problems });
  }
  const ports = [...new Set([...ALWAYS_OPEN, ...(input.ports ?? [])])].sort((a, b) => a - b);
  return { name, type, sshKeys, userData: input.user_data || null, ports };
}

function tagsProblem(tags: string): string | undefined {
  if (!tags.isWellFormed()) return 'must be well-formed Unicode';
  return /\p{Cc}/u.test(tags) ? 'must have no control characters' : undefined;
}

function userDataProblem(text: string): string | undefined {
  if (!text.isWellFormed() || text.includes('\0')) return 'must be text without NUL';
  const bytes = Buffer.byteLength(text);
  return bytes <= USER_DATA_MAX_BYTES ? undefined : `must have at most ${USER_DATA_MAX_BYTES} bytes`;
}
