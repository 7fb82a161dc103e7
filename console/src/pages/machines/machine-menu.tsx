/** Start, stop, restart, power off, delete: a menu with explanations. */

import {
  ArrowPathIcon,
  ArrowUturnLeftIcon,
  BoltSlashIcon,
  ClipboardIcon,
  CommandLineIcon,
  PencilSquareIcon,
  PlayIcon,
  StopIcon,
  TrashIcon,
} from '@heroicons/react/24/outline';
import { Menu } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import type { Vm } from '../../../../sdk/index.ts';
import { copyText } from '../../parts/commands/copy.tsx';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { showDone } from '../../parts/notices.tsx';
import { sayCredits } from '../../parts/say.ts';
import { RowMenu, type RowMenuState } from '../../parts/tables/row-menu.tsx';
import { text } from '../../texts/text.ts';
import { usePower } from './power.ts';

export const ChangeMachine = lazyPart(() =>
  import('./change-machine.tsx').then((made) => made.ChangeMachine),
);

const RebuildMachine = lazyPart(() => import('./change-machine.tsx').then((made) => made.RebuildMachine));

type Asked = 'change' | 'rebuild' | 'stop' | 'restart' | 'powerOff' | 'delete';

const words = text.machines;

interface MachineMenuProps {
  readonly vm: Vm;
  /** Leaves the page of a deleted machine. */
  readonly onDeleted?: () => void;
}

export function MachineMenu(props: MachineMenuProps) {
  return (
    <RowMenu label={words.actionsOf(props.vm.name)}>
      {(menu, target) => <Items {...props} menu={menu} target={target} />}
    </RowMenu>
  );
}

interface ItemsProps extends MachineMenuProps {
  readonly menu: RowMenuState;
  readonly target: ReactElement;
}

function Items({ vm, onDeleted, menu, target }: ItemsProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const navigate = useNavigate();
  const power = usePower(vm);
  const isOn = vm.state === 'running' || vm.state === 'starting';
  const openConsole = () =>
    navigate({ to: '/machines/$vm', params: { vm: vm.vm_id }, search: { tab: 'console' } });
  return (
    <>
      <Menu position="bottom-end" {...menu}>
        <Menu.Target>{target}</Menu.Target>
        <Menu.Dropdown>
          {isOn ? (
            <>
              <Menu.Item leftSection={<CommandLineIcon width={18} />} onClick={openConsole}>
                {words.openConsole}
              </Menu.Item>
              <Menu.Item leftSection={<StopIcon width={18} />} onClick={() => setAsked('stop')}>
                {words.stop}
              </Menu.Item>
              <Menu.Item leftSection={<ArrowPathIcon width={18} />} onClick={() => setAsked('restart')}>
                {words.restart}
              </Menu.Item>
            </>
          ) : (
            <Menu.Item
              leftSection={<PlayIcon width={18} />}
              disabled={vm.state === 'stopping' || vm.state === 'deleting'}
              onClick={() => power.start.mutate()}
            >
              {words.start}
            </Menu.Item>
          )}
          {(isOn || vm.state === 'stopping') && (
            <Menu.Item leftSection={<BoltSlashIcon width={18} />} onClick={() => setAsked('powerOff')}>
              {words.powerOff}
            </Menu.Item>
          )}
          {vm.state !== 'deleting' && (
            <Menu.Item leftSection={<PencilSquareIcon width={18} />} onClick={() => setAsked('change')}>
              {words.change}
            </Menu.Item>
          )}
          {(vm.state === 'stopped' || vm.state === 'created') && (
            <Menu.Item leftSection={<ArrowUturnLeftIcon width={18} />} onClick={() => setAsked('rebuild')}>
              {words.rebuild}
            </Menu.Item>
          )}
          {vm.ssh_command !== null && (
            <Menu.Item
              leftSection={<ClipboardIcon width={18} />}
              onClick={() => void copyText(vm.ssh_command ?? '').then(() => showDone(words.sshCopied))}
            >
              {words.copySshLine}
            </Menu.Item>
          )}
          <Menu.Divider />
          <Menu.Item
            color="var(--wrong)"
            leftSection={<TrashIcon width={18} />}
            onClick={() => setAsked('delete')}
          >
            {words.delete}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asked === 'change' && <ChangeMachine vm={vm} onClose={() => setAsked(null)} />}
      {asked === 'rebuild' && <RebuildMachine vm={vm} onClose={() => setAsked(null)} />}
      <Asks vm={vm} asked={asked} power={power} onDeleted={onDeleted} onClose={() => setAsked(null)} />
    </>
  );
}

interface AsksProps {
  readonly vm: Vm;
  readonly asked: Asked | null;
  readonly power: ReturnType<typeof usePower>;
  readonly onDeleted: (() => void) | undefined;
  readonly onClose: () => void;
}

function Asks({ vm, asked, power, onDeleted, onClose }: AsksProps) {
  const { stop, restart, remove } = power;
  const isOff = vm.state === 'stopped' || vm.state === 'created' || vm.state === 'error';
  const deleted = () => {
    onClose();
    onDeleted?.();
  };
  return (
    <>
      <Confirm
        isOpen={asked === 'stop'}
        title={words.stopAsk(vm.name)}
        action={words.stop}
        isBusy={stop.isPending}
        error={stop.error}
        onConfirm={() => stop.mutate({ force: false }, { onSuccess: onClose })}
        onClose={onClose}
      >
        {words.stopLead} {vm.price_per_hour > 0 && words.stopPrice(sayCredits(vm.price_per_hour))}
      </Confirm>
      <Confirm
        isOpen={asked === 'restart'}
        title={words.restartAsk(vm.name)}
        action={words.restart}
        isBusy={restart.isPending}
        error={restart.error}
        onConfirm={() => restart.mutate(undefined, { onSuccess: onClose })}
        onClose={onClose}
      >
        {words.restartLead}
      </Confirm>
      <Confirm
        isOpen={asked === 'powerOff'}
        title={words.powerOffAsk(vm.name)}
        action={words.powerOff}
        error={stop.error}
        onConfirm={() => stop.mutate({ force: true }, { onSuccess: onClose })}
        onClose={onClose}
      >
        {words.powerOffLead}
      </Confirm>
      <Confirm
        isOpen={asked === 'delete'}
        title={words.deleteAsk(vm.name)}
        action={words.delete}
        typed={vm.name}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate(undefined, { onSuccess: deleted })}
        onClose={onClose}
      >
        {!isOff && words.deleteRunning} {words.deleteLead(vm.disk_gb, vm.ip_address ?? '')}
      </Confirm>
    </>
  );
}
