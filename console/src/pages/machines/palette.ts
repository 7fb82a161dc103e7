import { PlusIcon, ServerIcon } from '@heroicons/react/24/outline';
import { cloud } from '../../cloud.ts';
import type { PaletteSource } from '../../palette/sources.ts';
import { text } from '../../texts/text.ts';

const FOUND_MAX = 8;

export const machinesPalette: PaletteSource = {
  actions: [
    { id: 'create-machine', label: text.machines.create, icon: PlusIcon, open: { to: '/machines/new' } },
  ],
  find: async (words) => {
    const machines = await cloud.vms.list().all();
    return machines
      .filter(({ name, tags }) => `${name} ${tags}`.toLowerCase().includes(words.toLowerCase()))
      .slice(0, FOUND_MAX)
      .map(({ vm_id, name }) => ({
        id: vm_id,
        label: name,
        note: text.machines.machine,
        icon: ServerIcon,
        open: { to: '/machines/$vm', params: { vm: vm_id } },
      }));
  },
};
