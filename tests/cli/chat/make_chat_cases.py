#!/usr/bin/env python3
"""Write chat_cases.json: chat templates and the texts that Jinja for Python makes of them.

The templates were written for this test, in the styles that published models use. The environment
is set up as the documentation of chat templates describes it: blocks trimmed, loop controls,
`raise_exception`, `strftime_now` and a `tojson` without HTML's escapes. Needs jinja2 3.1.6.
"""
import json
from datetime import datetime, timezone
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1753963200
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def fail(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = fail
    env.globals["strftime_now"] = lambda f: datetime.fromtimestamp(NOW, timezone.utc).strftime(f)
    return env


TEMPLATES = {
    "marked_turns": """\
{% for message in messages %}
    {%- if loop.first and message['role'] != 'system' %}
{{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
""",
    "begin_and_brackets": """\
{%- if messages[0]['role'] == 'system' -%}
    {%- set system_message = messages[0]['content'] | trim -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set system_message = none -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{{ bos_token }}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Roles must take turns: user, assistant, user, ...') }}
    {%- endif -%}
    {%- if message['role'] == 'user' -%}
        {%- set content = message['content'].strip() -%}
        {%- if loop.last and system_message is not none -%}
            {%- set content = '<<SYS>>\\n' ~ system_message ~ '\\n<</SYS>>\\n\\n' ~ content -%}
        {%- endif -%}
        {{ '[INST] ' + content + ' [/INST]' }}
    {%- else -%}
        {{ ' ' + message['content'].rstrip() + eos_token }}
    {%- endif -%}
{%- endfor -%}
""",
    "headers_and_date": """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(count=0, last='', system=false) %}
{%- for m in messages %}
    {%- set ns.count = ns.count + 1 %}
    {%- set ns.last = m['role'] %}
    {%- if m['role'] == 'system' %}{% set ns.system = true %}{% endif %}
{%- endfor %}
{{- "<|head|>system<|end|>\\n\\nToday is " + date_string + ".\\n" }}
{%- if not ns.system %}{{- "No instructions.\\n" }}{% endif %}
{%- for m in messages %}
    {%- for key, value in m.items() %}
        {{- loop.index ~ "/" ~ loop.length ~ " " ~ key.upper() ~ "=" ~ value.strip().replace("\\n", " ")[:40] ~ "|" }}
    {%- endfor %}
    {{- "<|eot|>" }}
{%- endfor %}
{%- if add_generation_prompt and ns.last != 'assistant' %}
    {{- "<|head|>assistant<|end|>\\n\\n" ~ ns.count ~ " of " ~ messages | length }}
{%- endif %}
""",
    "json_and_refusal": """\
{%- macro tag(name, body) -%}<{{ name }}>{{ body }}</{{ name }}>{%- endmacro -%}
{%- set known = ['system', 'user', 'assistant'] %}
{%- for message in messages %}
    {%- if message.role not in known %}
        {{- raise_exception("Unknown role: " + message.role) }}
    {%- endif %}
    {%- if message.content is string and message.content.startswith('!refuse') %}
        {{- raise_exception("This template refuses " ~ message.content | tojson) }}
    {%- endif %}
    {%- if message.content.endswith('skip') %}{% continue %}{% endif %}
    {{- tag('turn', message | tojson) }}
    {{- {'role': message.role, 'words': message.content.split(' ')} | tojson(indent=2) }}
{%- endfor %}
{%- if tools is not none and tools %}{{ tools | tojson }}{% endif %}
{%- if documents %}{{ documents | length }}{% endif %}
{{- messages | map(attribute='role') | join(', ') }}
{{- ' ' ~ (messages | selectattr('role', 'equalto', 'user') | list | length) }}
{{- ' ' ~ (eos_token if eos_token else 'none') ~ ' ' ~ missing | default('-') }}
{{- '\\n' if add_generation_prompt else '' }}
""",
    "indented_blocks": """\
{% set offset = 1 if messages[0].role == 'system' else 0 %}
  {% if offset %}
System: {{ messages[0].content.split('\\n')[-1].lstrip() | upper }}
  {% endif %}

{% for message in messages[offset:] %}
  {% if message.role == 'user' %}
User {{ loop.index }}: {{ message.content.title() if message.content | length < 8 else message.content }}
  {% elif loop.last %}
unreachable
  {% endif %}
{% endfor %}
{% for i in range(10) if i % 3 == 0 %}{% if i > 6 %}{% break %}{% endif %}{{ i }}{{ "," if not loop.last }}{% endfor %}

Assistant:""",
}

CONVERSATIONS = {
    "user": [{"role": "user", "content": "Who was <Emma> & \"co\"?"}],
    "system": [{"role": "system", "content": " Be\n brief. "}, {"role": "user", "content": " it's naïve 漢字\n{{ 7 * 7 }} "}],
    "short": [{"role": "user", "content": "skip"}],
    "refused": [{"role": "user", "content": "!refuse 'x'"}],
}


def main():
    cases = []
    for name, template in TEMPLATES.items():
        compiled = environment().from_string(template)
        for conversation, messages in CONVERSATIONS.items():
            case = {"name": f"{name}/{conversation}", "template": template, "messages": messages}
            try:
                case["text"] = compiled.render(messages=messages, tools=None, documents=None,
                                               add_generation_prompt=True, **TOKENS)
            except jinja2.exceptions.TemplateError as error:
                case["refusal"] = error.message
            cases.append(case)
    out = {"from": f"jinja2 {jinja2.__version__}", "now": NOW, "tokens": TOKENS, "cases": cases}
    path = Path(__file__).with_name("chat_cases.json")
    path.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
