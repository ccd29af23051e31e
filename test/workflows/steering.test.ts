import { describe, expect, it } from 'vitest';
import { MAX_PROMPT_BYTES } from '../../src/protocol.ts';
import { rememberId, steeringProblem } from '../../src/workflows/steering.ts';

const running = { isEnding: false, steering: [] };
const message = { id: 'a', text: 'go left' };

describe('a steering message', () => {
  it('is taken while turns follow and refused once none does', () => {
    expect(steeringProblem(running, message)).toBeUndefined();
    expect(steeringProblem({ ...running, isEnding: true }, message)).toContain('use errand continue');
  });

  it.each([[undefined], [null], [3], [{}], [{ ...message, id: '' }], [{ ...message, text: ' ' }]])(
    '%j is refused',
    (wrong) => {
      expect(steeringProblem(running, wrong)).toContain('steer needs');
    },
  );

  it('is refused when it is longer than a prompt may be, counted in bytes', () => {
    expect(steeringProblem(running, { id: 'a', text: 'ä'.repeat(MAX_PROMPT_BYTES / 2) })).toBeUndefined();
    expect(steeringProblem(running, { id: 'a', text: 'ä'.repeat(MAX_PROMPT_BYTES / 2 + 1) })).toContain('bytes');
    expect(steeringProblem(running, { id: 'x'.repeat(201), text: 'y' })).toContain('"id"');
  });

  it('is refused when those that wait would no longer fit through history', () => {
    const long = { id: 'a', text: 'x'.repeat(MAX_PROMPT_BYTES - 100) };
    expect(steeringProblem({ ...running, steering: [long, long, long] }, long)).toBeUndefined();
    expect(steeringProblem({ ...running, steering: [long, long, long, long] }, long)).toMatch(
      /^4 messages \(\d+ bytes\) wait for the next turn already, and up to 262144 bytes can\. This one was not taken/,
    );
  });

  it('promise 8: counts ids too, so that very many short ones do not make history large', () => {
    const short = Array.from({ length: 1_200 }, (_, i) => ({ id: `${i}`.padStart(200, 'x'), text: 'y' }));
    expect(steeringProblem({ ...running, steering: short }, message)).toContain('was not taken');
  });

  it('is remembered, the last hundred of them', () => {
    const ids = Array.from({ length: 150 }, (_, i) => `id-${i}`).reduce<readonly string[]>(rememberId, []);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([100, 'id-50', 'id-149']);
  });
});
