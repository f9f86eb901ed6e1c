"use strict";
// The scripts of the page in node, with just as much of a document as they use. Reads a JSON list of pages from
// standard input, each { numbers, asks }, and writes what the calculator says: a list of [head, says, note] for each page.
const fs = require("fs");
const vm = require("vm");

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], listeners: [], textContent: "", given: undefined });
  }
  append(...parts) {
    for (const part of parts) {
      part.parent = this;
      this.children.push(part);
    }
  }
  replaceChildren(...parts) {
    this.children = [];
    this.append(...parts);
  }
  remove() {
    this.parent.children = this.parent.children.filter((part) => part !== this);
  }
  get lastChild() {
    return this.children[this.children.length - 1];
  }
  get value() {
    if (this.tag !== "select" || this.given !== undefined) return this.given === undefined ? "" : String(this.given);
    return this.options.length ? this.options[0].value : "";
  }
  set value(value) {
    this.given = value;
  }
  get options() {
    return this.children.flatMap((part) => (part.tag === "option" ? [part] : part.options));
  }
  get selectedOptions() {
    return this.options.filter((option) => option.value === this.value);
  }
  toggleAttribute() {}
  addEventListener(name, listener) {
    if (name === "input") this.listeners.push(listener);
  }
  find(id) {
    return this.id === id ? this : this.children.map((part) => part.find(id)).find(Boolean);
  }
}

const [, , ...paths] = process.argv;
const scripts = paths.map((path) => new vm.Script(fs.readFileSync(path, "utf8")));

const says = ({ numbers, asks }) => {
  const fixed = {};
  for (const id of ["numbers", "calculator-form", "calc-what", "calc-where", "calc-head", "calc-says", "calc-how", "calc-note"])
    fixed[id] = Object.assign(new Element(id === "calc-what" ? "select" : "div"), { id });
  fixed.numbers.textContent = JSON.stringify(numbers);
  const document = {
    getElementById: (id) => fixed[id] || fixed["calc-where"].find(id),
    createElement: (tag) => new Element(tag),
  };
  const context = vm.createContext({ document });
  for (const script of scripts) script.runInContext(context);
  const form = fixed["calculator-form"];
  return asks.map((ask) => {
    for (const [id, value] of Object.entries(ask)) {
      const control = document.getElementById(id);
      if (!control || (control.tag === "select" && !control.options.some((o) => o.value === value))) return null;
      control.value = value;
      for (const listener of form.listeners) listener({ target: control });
    }
    return ["calc-head", "calc-says", "calc-note"].map((id) => fixed[id].textContent);
  });
};

process.stdout.write(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(says)));
