/** OpenSSH public keys, as in authorized_keys but without options. */

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
/** Type, its length, and at least the 32 bytes of the shortest key. */
const MIN_BLOB_BYTES = 4 + 11 + 4 + 32;

/** What is wrong with a key line, or undefined. */
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
    return 'has no base64 key after its type';
  const bytes = Buffer.from(blob, 'base64');
  if (bytes.length < MIN_BLOB_BYTES) return 'has a key that is too short';
  const inner = bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString('latin1');
  return inner === type ? undefined : `says ${type}, and the key itself something else`;
}
