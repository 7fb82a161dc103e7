/** Keys that the keyboards of phones lack. */
import { Button, Group } from '@mantine/core';
import { text } from '../../texts/text.ts';
import classes from './console-tab.module.css';
import type { TerminalHandle } from './use-terminal.ts';

const words = text.machines.console;
const ARROWS = [
  ['↑', 'A', words.up],
  ['↓', 'B', words.down],
  ['←', 'D', words.left],
  ['→', 'C', words.right],
] as const;

export function ConsoleKeys({ terminal }: { terminal: TerminalHandle }) {
  const { type, arrow, isControl, setControl } = terminal;
  return (
    <Group gap={4} className={classes.keys ?? ''} role="group" aria-label={words.keys}>
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
      // The terminal keeps the focus, and with it the keyboard on the screen stays open.
      onMouseDown={(event) => event.preventDefault()}
      onClick={onPress}
    >
      {says}
    </Button>
  );
}
