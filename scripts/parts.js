/**
 * The parts that a cloud can do without at first, each an entry here: the guest image and the programs of
 * database engines. `npm start` leaves them to the server, which runs scripts/prepare.js beside it; other
 * set-ups wait for them. Plain JavaScript without dependencies, because an old Node runs it.
 */
import {
  fetchDatabasePrograms,
  folderOf,
  forgetFailure,
  missingDatabasePrograms,
  NoPackages,
} from './database-programs.js';
import { buildGuestImage, isGuestImageCurrent, noteNoGuestImage } from './guest-image.js';
import { COPY_IMAGE, GuestImageError } from './guest-packages.js';
import { fetchNpmPostgresql, isInNpm } from './npm-postgresql.js';
import { trustExtensions } from './trusted-extensions.js';

/** Each takes `root` of the project, `outsidePath` for Debian's tools, `onProgress(percent, step)`. */
const GUEST_IMAGE = {
  name: 'guest-image',
  title: 'guest image',
  isThere: isGuestImageCurrent,
  prepare({ root, outsidePath, onProgress }) {
    try {
      buildGuestImage({ root, outsidePath, onProgress });
      return 'done';
    } catch (error) {
      if (error instanceof GuestImageError) noteNoGuestImage(root, error);
      throw error;
    }
  },
};

function programsOf(name, title) {
  return {
    name,
    title,
    isThere: (root) => !missingDatabasePrograms(root).includes(name),
    prepare: ({ root, outsidePath, onProgress }) =>
      fetchDatabasePrograms({ root, outsidePath, name, onProgress }),
  };
}

const MARIADB = programsOf('mariadb', 'MariaDB');
const DEBIAN_POSTGRESQL = programsOf('postgresql', 'PostgreSQL');
const POSTGRESQL = {
  ...DEBIAN_POSTGRESQL,
  /** `hasOwn`: whether the host has one. Without its packages, a server without dumps is better than none. */
  prepare({ hasOwn, ...options }) {
    const folder = folderOf(options.root);
    try {
      return DEBIAN_POSTGRESQL.prepare(options);
    } catch (error) {
      if (!(error instanceof NoPackages) || !isInNpm() || hasOwn()) throw error;
      const version = fetchNpmPostgresql(folder);
      forgetFailure(options.root, 'postgresql');
      return version;
    } finally {
      trustExtensions(folder);
    }
  },
};

/** In the order of preparation: machines first, which need theirs to start at all. */
const PARTS = [GUEST_IMAGE, POSTGRESQL, MARIADB];

/** The missing or outdated parts. */
export function missingParts(root) {
  return PARTS.filter((part) => !part.isThere(root));
}

/** Whether the same attempt may succeed later: an unreachable mirror, a full disk. */
export function mayComeLater(error) {
  return !(error instanceof NoPackages) && error.fix !== COPY_IMAGE;
}
