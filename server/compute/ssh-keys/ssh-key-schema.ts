/** Public schemas of the SSH keys of accounts. */
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';

export const SshKey = namedObject('SshKey', {
  name: Type.String(),
  public_key: Type.String(),
  fingerprint: Type.String({ description: 'Fingerprint as shown by ssh-keygen -l' }),
  created_at: Type.String(),
});
export type SshKey = Static<typeof SshKey>;

export const NewSshKey = namedObject('NewSshKey', {
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$',
    'x-rule': 'must have 1 to 64 of A-Z, a-z, 0-9, ".", "_", "@" and "-", and begin with a letter or digit',
  }),
  public_key: Type.String({ description: 'An OpenSSH public key' }),
});
export type NewSshKey = Static<typeof NewSshKey>;

export const DeletedSshKey = namedObject('DeletedSshKey', {
  name: Type.String(),
  deleted: Type.Literal(true),
});
export type DeletedSshKey = Static<typeof DeletedSshKey>;

export const SshKeyPath = Type.Object({ name: Type.String({ $id: 'SshKeyName' }) });
