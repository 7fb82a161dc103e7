/** The serial console, loaded when shown: typing, pasting, full screen, and leaving by keyboard. */

import {
  ArrowPathIcon,
  ArrowsPointingInIcon,
  ArrowsPointingOutIcon,
  ClipboardDocumentIcon,
  CommandLineIcon,
  ViewfinderCircleIcon,
} from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text, Textarea, Tooltip } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { Vm } from '../../../../sdk/index.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Empty } from '../../parts/page.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { text } from '../../texts/text.ts';
import classes from './console-tab.module.css';
import { vmQuery, WITH_CONSOLE } from './queries.ts';
import { type TerminalHandle, useTerminal } from './use-terminal.ts';

const words = machineText.console;

export function ConsoleTab({ vm }: { vm: Vm }) {
  if (!WITH_CONSOLE.includes(vm.state)) {
    return (
      <Empty icon={CommandLineIcon} title={words.off}>
        {words.offLead}
      </Empty>
    );
  }
  // A restarted machine has a new serial line.
  return <Console key={vm.started_at ?? 'starting'} vmId={vm.vm_id} />;
}

function Console({ vmId }: { vmId: string }) {
  const frame = useRef<HTMLElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const firstButton = useRef<HTMLButtonElement>(null);
  const [isPasting, setPasting] = useState(false);
  const queryClient = useQueryClient();
  const isFull = useSyncExternalStore(onFullScreen, () => document.fullscreenElement !== null);
  const terminal = useTerminal(container, vmId, () => firstButton.current?.focus());
  const { state, type, tellSize, reconnect } = terminal;
  useEffect(() => {
    if (state === 'ended') void queryClient.invalidateQueries({ queryKey: vmQuery(vmId).queryKey });
  }, [state, vmId, queryClient]);
  return (
    <section ref={frame} className={classes.frame} aria-label={text.machines.tabs.console}>
      <Group justify="space-between" className={classes.bar ?? ''}>
        <Text size="sm" role="status" data-state={state} className={classes.state ?? ''}>
          {words[state]}
        </Text>
        <Group gap={4}>
          {(state === 'lost' || state === 'refused' || state === 'ended') && (
            <Tool icon={ArrowPathIcon} label={words.reconnect} onClick={reconnect} />
          )}
          <Tool
            buttonRef={firstButton}
            icon={ClipboardDocumentIcon}
            label={words.paste}
            onClick={() => setPasting(true)}
          />
          <Tool icon={ViewfinderCircleIcon} label={words.fit} note={words.fitLead} onClick={tellSize} />
          {document.fullscreenEnabled && (
            <Tool
              icon={isFull ? ArrowsPointingInIcon : ArrowsPointingOutIcon}
              label={isFull ? words.smallScreen : words.fullScreen}
              onClick={() => frame.current && changeScreen(frame.current)}
            />
          )}
        </Group>
      </Group>
      <div ref={container} className={classes.screen} />
      <ConsoleKeys terminal={terminal} />
      <Text size="xs" className={classes.foot ?? ''}>
        {words.leave}
      </Text>
      <PasteForm isOpen={isPasting} onClose={() => setPasting(false)} onSend={type} />
    </section>
  );
}

function onFullScreen(listener: () => void): () => void {
  document.addEventListener('fullscreenchange', listener);
  return () => document.removeEventListener('fullscreenchange', listener);
}

/** Escape is sent to the guest if the browser allows it; then it must be held down to leave. */
async function changeScreen(frame: HTMLElement): Promise<void> {
  if (document.fullscreenElement !== null) return document.exitFullscreen();
  await frame.requestFullscreen();
  const { keyboard } = navigator as { keyboard?: { lock(keys: readonly string[]): Promise<void> } };
  await keyboard?.lock(['Escape']);
}

interface ToolProps {
  readonly icon: typeof ArrowPathIcon;
  readonly label: string;
  readonly note?: string;
  readonly buttonRef?: React.Ref<HTMLButtonElement>;
  readonly onClick: () => void;
}

function Tool({ icon: Icon, label, note, buttonRef, onClick }: ToolProps) {
  return (
    <Tooltip label={note} withinPortal={false} disabled={note === undefined} multiline maw={260}>
      <Button
        {...(buttonRef === undefined ? {} : { ref: buttonRef })}
        size="compact-sm"
        className={classes.tool ?? ''}
        leftSection={<Icon width={16} aria-hidden />}
        onClick={onClick}
      >
        {label}
      </Button>
    </Tooltip>
  );
}

interface PasteProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onSend: (typed: string) => void;
}

function PasteForm({ isOpen, onClose, onSend }: PasteProps) {
  const [typed, setTyped] = useState('');
  return (
    // Inside the frame, because only its content is visible in full screen.
    <Dialog opened={isOpen} onClose={onClose} title={words.pasteTitle} withinPortal={false}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onClose();
          setTyped('');
          onSend(typed.replaceAll('\n', '\r'));
        }}
      >
        <Stack>
          <Textarea
            data-autofocus
            aria-label={words.pasteTitle}
            description={words.pasteLead}
            value={typed}
            autosize
            minRows={4}
            maxRows={16}
            spellCheck={false}
            classNames={{ input: 'mono' }}
            onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button type="submit" disabled={typed === ''}>
              {words.pasteSend}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

/** Keys that the keyboards of phones lack. */
const ARROWS = [
  ['↑', 'A', machineText.console.up],
  ['↓', 'B', machineText.console.down],
  ['←', 'D', machineText.console.left],
  ['→', 'C', machineText.console.right],
] as const;

function ConsoleKeys({ terminal }: { terminal: TerminalHandle }) {
  const { type, arrow, isControl, setControl } = terminal;
  return (
    <Group gap={4} className={classes.keys ?? ''} role="group" aria-label={machineText.console.keys}>
      <Key says="Esc" onPress={() => type('\x1b')} />
      <Key says="Tab" onPress={() => type('\t')} />
      <Key says="Ctrl" isHeld={isControl} onPress={() => setControl(!isControl)} />
      {ARROWS.map(([sign, end, name]) => (
        <Key key={end} says={sign} label={name} onPress={() => arrow(end)} />
      ))}
    </Group>
  );
}

interface KeyProps {
  readonly says: string;
  readonly label?: string;
  readonly isHeld?: boolean;
  readonly onPress: () => void;
}

function Key({ says, label = says, isHeld, onPress }: KeyProps) {
  return (
    <Button
      size="compact-sm"
      className={classes.key ?? ''}
      aria-label={label}
      aria-pressed={isHeld}
      // The terminal keeps the focus, so that the on-screen keyboard stays open.
      onMouseDown={(event) => event.preventDefault()}
      onClick={onPress}
    >
      {says}
    </Button>
  );
}
