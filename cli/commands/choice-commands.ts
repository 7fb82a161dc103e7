/** Commands that list instance types, images, engines and quotas. */
import type { Command } from '../command.ts';
import { sizeText } from '../output.ts';

export const CHOICE_COMMANDS: readonly Command[] = [
  {
    name: 'vm types',
    words: '',
    summary: 'list the instance types with their prices',
    run: async ({ session, output }) => {
      const types = await session().cloud.listInstanceTypes();
      const headings = ['TYPE', 'VCPUS', 'MEMORY', 'DISK', 'PER HOUR', 'AVAILABLE'];
      output.table(types, headings, (type) => {
        const { instance_type, vcpus, memory_mb, disk_gb, total_price_per_hour, startable, reason } = type;
        const sizes = [vcpus, `${memory_mb} MB`, `${disk_gb} GB`] as const;
        return [instance_type, ...sizes, total_price_per_hour, startable ? 'yes' : `no: ${reason}`];
      });
    },
  },
  {
    name: 'vm images',
    words: '',
    summary: 'list the images that machines start from',
    run: async ({ session, output }) => {
      const images = await session().cloud.listImages();
      output.table(images, ['IMAGE', 'NAME', 'LOGIN', 'SIZE', 'MIN DISK'], (image) => {
        const { image_id, short_name, name, size, min_disk_gb, login_user } = image;
        return [
          short_name ?? image_id,
          name,
          login_user,
          size === null ? null : sizeText(size),
          `${min_disk_gb} GB`,
        ];
      });
    },
  },
  {
    name: 'db engines',
    words: '',
    summary: 'list the database engines',
    run: async ({ session, output }) => {
      const engines = await session().cloud.listDatabaseEngines();
      output.table(engines, ['ENGINE', 'VERSION', 'SERVER', 'AVAILABLE'], (one) => {
        const { engine, version, source, available, reason } = one;
        return [engine, version, source, available ? 'yes' : `no: ${reason}`];
      });
    },
  },
  {
    name: 'quotas',
    words: '',
    summary: 'show the quotas of the account and their use',
    run: async ({ session, output }) => {
      const { quotas } = await session().cloud.getQuotas();
      const uses = Object.entries(quotas).map(([quota, use]) => ({ quota, ...use }));
      output.table(uses, ['QUOTA', 'USED', 'LIMIT'], ({ quota, used, limit }) => {
        const shown = (count: number) => (quota.endsWith('_bytes') ? sizeText(count) : count);
        return [quota, shown(used), limit === null ? 'none' : shown(limit)];
      });
    },
  },
];
