/** Clouds whose wall clock a test sets, by Debian's package faketime. */
import { existsSync, readdirSync } from 'node:fs';
import { notInstalled } from '../../scripts/installed.ts';

const LIBRARY = readdirSync('/usr/lib')
  .map((name) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

/** Why clocks cannot be set here, or false. For the `skip` of tests. */
export const noFakedClock: string | false =
  notInstalled('faketime') || (LIBRARY ? false : 'libfaketime is not where Debian has it');

/** The environment of a process with such a clock; the host's monotonic clock stays the same. */
export const FAKED_CLOCK = {
  LD_PRELOAD: LIBRARY ?? '',
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
  NO_FAKE_STAT: '1',
};
