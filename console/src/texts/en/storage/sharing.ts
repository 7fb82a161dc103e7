/** Shared links. */
import { count } from '../counted.ts';

export const sharing = {
  title: (name: string) => `Share ${name}`,
  never: 'Never',
  optional: 'Optional',
  password: 'Password',
  most: 'Maximum downloads',
  fileLead: 'Anyone with the link can download this file without an account, until the link ends.',
  folderLead: 'Anyone with the link can see and download everything in this folder, until the link ends.',
  none: 'No shared links',
  noneLead: 'Links that you share from this bucket are listed here until they end.',
  state: 'State',
  states: { active: 'Active', expired: 'Expired', used_up: 'Used up' },
  withPassword: 'with password',
  ends: 'Ends',
  downloads: 'Downloads',
  used: (done: number, most: number | null) =>
    most === null ? count(done) : `${count(done)} of ${count(most)}`,
  copyOne: (name: string) => `Copy link to ${name}`,
  end: 'End',
  endOne: (name: string) => `End link to ${name}`,
  ended: (name: string) => `The link to ${name} has ended`,
};
