/** SSH keys of the account, by name. */
import type { Command } from '../command.ts';
import { assertMeant, YES } from '../resources.ts';
import { readTextFile } from '../text-file.ts';

export const SSH_KEY_COMMANDS: readonly Command[] = [
  {
    name: 'ssh-key ls',
    words: '',
    summary: 'list the SSH keys of the account',
    run: async ({ session, output }) => {
      const keys = await session().cloud.listSshKeys();
      output.table(keys, ['NAME', 'FINGERPRINT', 'CREATED'], ({ name, fingerprint, created_at }) => {
        return [name, fingerprint, created_at];
      });
    },
  },
  {
    name: 'ssh-key add',
    words: 'NAME FILE',
    summary: 'store the public key in FILE under a name, for new machines',
    run: async ({ words: [name = '', file = ''], session, output }) => {
      const made = await session().cloud.addSshKey({ name, public_key: readTextFile(file) });
      output.one(made, () => [`${name} is stored: ${made.fingerprint}`]);
    },
  },
  {
    name: 'ssh-key rm',
    words: 'NAME',
    summary: 'delete an SSH key of the account; machines that have it keep it',
    options: YES,
    run: async (call) => {
      const [name = ''] = call.words;
      await assertMeant(call, `Delete the SSH key ${name}?`);
      const deleted = await call.session().cloud.deleteSshKey(name);
      call.output.one(deleted, () => [`${name} is deleted`]);
    },
  },
];
