/** The rules for user names, e-mail addresses and passwords (contract §3). */
import { assertFields, type FieldProblem } from '../platform/errors.ts';

export const USERNAME_PATTERN = '^[A-Za-z0-9._-]{3,64}$';
/** Deliberately permissive: only sending a mail shows whether an address works. */
export const EMAIL_PATTERN =
  '^[^\\s@,;:<>()\\[\\]"\\\\\\u0000-\\u001f\\u007f]+@' +
  '[^\\s@.,;:<>()\\[\\]"\\\\\\u0000-\\u001f\\u007f]+(\\.[^\\s@.,;:<>()\\[\\]"\\\\\\u0000-\\u001f\\u007f]+)*$';
/** RFC 5321 §4.5.3.1.3, less the angle brackets. */
export const EMAIL_MAX_LENGTH = 254;
export const USERNAME_RULE = 'must be 3 to 64 characters from A-Z, a-z, 0-9, ".", "_" and "-"';
export const EMAIL_RULE = `must be an e-mail address of at most ${EMAIL_MAX_LENGTH} characters`;
export const PASSWORD_MIN_LENGTH = 8;
export const PASSWORD_MAX_LENGTH = 256;

const username = new RegExp(USERNAME_PATTERN, 'u');
const email = new RegExp(EMAIL_PATTERN, 'u');

/** Normalized for comparison: case-insensitive. */
export function foldUsername(name: string): string {
  return name.toLowerCase();
}

/** Normalized for comparison: case-insensitive, with compatible code points equal. */
export function foldEmail(address: string): string {
  return address.normalize('NFKC').toLowerCase();
}

function usernameProblem(name: string): string | undefined {
  if (username.test(name)) return undefined;
  return USERNAME_RULE;
}

function emailProblem(address: string): string | undefined {
  const folded = foldEmail(address);
  const fits = [...address].length <= EMAIL_MAX_LENGTH && [...folded].length <= EMAIL_MAX_LENGTH;
  if (fits && address.isWellFormed() && email.test(address) && email.test(folded)) return undefined;
  return EMAIL_RULE;
}

function passwordProblem(password: string): string | undefined {
  // Counted in code points; lone surrogates are refused because they would all hash alike.
  const length = [...password].length;
  if (!password.isWellFormed()) return 'must be well-formed Unicode';
  if (length >= PASSWORD_MIN_LENGTH && length <= PASSWORD_MAX_LENGTH) return undefined;
  return `must be ${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters`;
}

export interface AccountFields {
  readonly username?: string | undefined;
  readonly email?: string | undefined;
  readonly password?: string | undefined;
}

/** Throws `invalid_request` that names every invalid field. */
export function assertAccountFields(fields: AccountFields): void {
  const problems: FieldProblem[] = [];
  const note = (field: keyof AccountFields, rule: (text: string) => string | undefined) => {
    const value = fields[field];
    const message = value === undefined ? undefined : rule(value);
    if (message !== undefined) problems.push({ field, message });
  };
  note('username', usernameProblem);
  note('email', emailProblem);
  note('password', passwordProblem);
  assertFields(problems);
}
